"""Durable background jobs and schedules in the database that holds your data.

The public names are looked up on first use, because this module is imported before Django's models are ready.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "job": ".handle",
    "RunningJob": ".worker.running",
    "enqueue": ".operations.enqueue",
    "aenqueue": ".operations.enqueue",
    "job_context": ".context",
    "EnqueuedJob": ".operations.enqueue",
    "get_job": ".operations.lookup",
    "cancel": ".operations.cancel",
    "retry_dead": ".operations.dead_letters",
    "discard_dead": ".operations.dead_letters",
    "pause": ".operations.queues",
    "resume": ".operations.queues",
    "schedule": ".declaring",
    "create_schedule": ".operations.schedules",
    "delete_schedule": ".operations.schedules",
    "disable_schedule": ".operations.schedules",
    "enable_schedule": ".operations.schedules",
    "get_schedule": ".operations.schedules",
    "list_schedules": ".operations.schedules",
    "preview_schedule": ".operations.schedules",
    "run_schedule_now": ".operations.schedules",
    "update_schedule": ".operations.schedules",
    "Retry": ".exceptions",
    "Snooze": ".exceptions",
    "Cancel": ".exceptions",
    "Bury": ".exceptions",
    "RetryPolicy": ".retry",
    "at_least": ".expectations",
    "near_usual": ".expectations",
    "alerts": ".operations.alerts",
    "acknowledge_alert": ".operations.alerts",
    "resolve_alert": ".operations.alerts",
}

__all__ = [
    "Bury",
    "Cancel",
    "EnqueuedJob",
    "Retry",
    "RetryPolicy",
    "RunningJob",
    "Snooze",
    "acknowledge_alert",
    "aenqueue",
    "alerts",
    "at_least",
    "cancel",
    "create_schedule",
    "delete_schedule",
    "disable_schedule",
    "discard_dead",
    "enable_schedule",
    "enqueue",
    "get_job",
    "get_schedule",
    "job",
    "job_context",
    "list_schedules",
    "near_usual",
    "pause",
    "preview_schedule",
    "resolve_alert",
    "resume",
    "retry_dead",
    "run_schedule_now",
    "schedule",
    "update_schedule",
]

if TYPE_CHECKING:
    from .context import job_context
    from .declaring import schedule
    from .exceptions import Bury, Cancel, Retry, Snooze
    from .expectations import at_least, near_usual
    from .handle import job
    from .operations.alerts import acknowledge_alert, alerts, resolve_alert
    from .operations.cancel import cancel
    from .operations.dead_letters import discard_dead, retry_dead
    from .operations.enqueue import EnqueuedJob, aenqueue, enqueue
    from .operations.lookup import get_job
    from .operations.queues import pause, resume
    from .operations.schedules import (
        create_schedule,
        delete_schedule,
        disable_schedule,
        enable_schedule,
        get_schedule,
        list_schedules,
        preview_schedule,
        run_schedule_now,
        update_schedule,
    )
    from .retry import RetryPolicy
    from .worker.running import RunningJob


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
