"""Threads for what ``async def`` handlers hand to ``asyncio.to_thread()`` or ``sync_to_async(thread_sensitive=False)``.

asyncio has one pool for all of it, of a few threads: calls of one run that never return, or are many, would keep those
of every other run waiting. So each run has a pool of its own. A thread cannot be stopped, and the run knows what of it
still goes on when its handler has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any

from .hygiene import close_connections
from .running import Run

current_run: ContextVar[Run] = ContextVar("django_jobs_run")


class RunPools(ThreadPoolExecutor):
    """The default executor of the event loop. Itself it serves tasks that have outlived their run."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        run = current_run.get(None)
        call = partial(_tidily, call)
        if run is None or run.returned:
            return super().submit(call, *arguments, **named)
        if run.pool is None:
            run.pool = ThreadPoolExecutor()
        return run.note_call(run.pool.submit(call, *arguments, **named))


def _tidily(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    try:
        return call(*arguments, **named)
    finally:
        close_connections()
