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
    "Retry": ".exceptions",
    "Snooze": ".exceptions",
    "Cancel": ".exceptions",
    "Bury": ".exceptions",
    "RetryPolicy": ".retry",
}

__all__ = [
    "Bury",
    "Cancel",
    "EnqueuedJob",
    "Retry",
    "RetryPolicy",
    "RunningJob",
    "Snooze",
    "aenqueue",
    "cancel",
    "discard_dead",
    "enqueue",
    "get_job",
    "job",
    "job_context",
    "pause",
    "resume",
    "retry_dead",
]

if TYPE_CHECKING:
    from .context import job_context
    from .exceptions import Bury, Cancel, Retry, Snooze
    from .handle import job
    from .operations.cancel import cancel
    from .operations.dead_letters import discard_dead, retry_dead
    from .operations.enqueue import EnqueuedJob, aenqueue, enqueue
    from .operations.lookup import get_job
    from .operations.queues import pause, resume
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
