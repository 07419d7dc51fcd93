"""What travels with a job besides its payload: request id, trace parent, who enqueued.

Set it once at the edge (a middleware, a command) and every job enqueued below carries it; a run sets its own
job's, so jobs enqueued by a handler carry it on. Names that begin with ``django_jobs.`` are ours: they say which slot
of which schedule a job is for, and go no further than that job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

RESERVED = "django_jobs."
SCHEDULE = f"{RESERVED}schedule"
SLOT = f"{RESERVED}slot"
JITTER = f"{RESERVED}jitter"

_context: ContextVar[MappingProxyType[str, str] | None] = ContextVar("django_jobs_context", default=None)


def current_context() -> dict[str, str]:
    return dict(_context.get() or {})


@contextmanager
def job_context(**values: str) -> Iterator[None]:
    """Jobs enqueued inside carry ``values``, added to those of an outer ``job_context``."""
    token = _context.set(MappingProxyType(current_context() | values))
    try:
        yield
    finally:
        _context.reset(token)


def adopt_context(values: dict[str, str]) -> None:
    """Replace the context of the current ``contextvars.Context``: a run's first act."""
    _context.set(MappingProxyType(without_reserved(values)))


def without_reserved(values: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if not name.startswith(RESERVED)}
