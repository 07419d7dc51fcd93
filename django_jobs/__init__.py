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
    "EnqueuedJob": ".operations.enqueued",
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
    "Actor": ".operations.audit",
    "DeadFilter": ".operations.dead_filter",
    "retry_changed": ".operations.dead_letters",
    "dead_groups": ".operations.dead_groups",
    "dead_group": ".operations.dead_groups",
    "dead_count": ".operations.dead_groups",
    "preview_bulk": ".operations.bulk",
    "start_bulk": ".operations.bulk",
    "get_bulk": ".operations.bulk",
    "confirm_bulk": ".operations.bulk",
    "abort_bulk": ".operations.bulk",
    "explain": ".operations.explain",
    "run_now": ".operations.urgency",
    "change_priority": ".operations.urgency",
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
    "Actor",
    "Bury",
    "Cancel",
    "DeadFilter",
    "EnqueuedJob",
    "Retry",
    "RetryPolicy",
    "RunningJob",
    "Snooze",
    "abort_bulk",
    "acknowledge_alert",
    "aenqueue",
    "alerts",
    "at_least",
    "cancel",
    "change_priority",
    "confirm_bulk",
    "create_schedule",
    "dead_count",
    "dead_group",
    "dead_groups",
    "delete_schedule",
    "disable_schedule",
    "discard_dead",
    "enable_schedule",
    "enqueue",
    "explain",
    "get_bulk",
    "get_job",
    "get_schedule",
    "job",
    "job_context",
    "list_schedules",
    "near_usual",
    "pause",
    "preview_bulk",
    "preview_schedule",
    "resolve_alert",
    "resume",
    "retry_changed",
    "retry_dead",
    "run_now",
    "run_schedule_now",
    "schedule",
    "start_bulk",
    "update_schedule",
]

if TYPE_CHECKING:
    from .context import job_context
    from .declaring import schedule
    from .exceptions import Bury, Cancel, Retry, Snooze
    from .expectations import at_least, near_usual
    from .handle import job
    from .operations.alerts import acknowledge_alert, alerts, resolve_alert
    from .operations.audit import Actor
    from .operations.bulk import abort_bulk, confirm_bulk, get_bulk, preview_bulk, start_bulk
    from .operations.cancel import cancel
    from .operations.dead_filter import DeadFilter
    from .operations.dead_groups import dead_count, dead_group, dead_groups
    from .operations.dead_letters import discard_dead, retry_changed, retry_dead
    from .operations.enqueue import aenqueue, enqueue
    from .operations.enqueued import EnqueuedJob
    from .operations.explain import explain
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
    from .operations.urgency import change_priority, run_now
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
