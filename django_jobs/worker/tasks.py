"""The event loop that runs ``async def`` handlers, in a thread of its own. Made when the first one comes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any, cast

from django_jobs import clock
from django_jobs.logs import get_logger

from .executor import Ended, Executor
from .offloading import RunPools, current_run
from .running import Run
from .slots import Slots

logger = get_logger("django_jobs.worker")

Next = Callable[[Slots, Run, Ended], Run | None]


class Tasks:
    def __init__(self, executor: Executor, following: Next) -> None:
        self._executor = executor
        self._following = following
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: dict[asyncio.Task[Any], Run] = {}
        self._asked_at: float | None = None
        self._closing = False
        self._lock = threading.Lock()

    def start(self, slots: Slots, run: Run) -> None:
        """Raises RuntimeError or OSError where the system gives no thread or descriptor for the event loop."""
        self._running_loop().call_soon_threadsafe(self._spawn, slots, run)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """Asked by the loop and by every thread whose run is followed by an async one."""
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                loop.set_default_executor(RunPools())
                thread = threading.Thread(target=self._serve, args=(loop,), name="django_jobs event loop", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    loop.close()
                    raise
                self._loop, self._thread = loop, thread
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._closing:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # One in a task that a handler has started passes through the loop. The other runs go on.
                logger.exception("A task of a handler broke out of the event loop; the loop goes on.")
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _spawn(self, slots: Slots, run: Run) -> None:
        loop = self._running_loop()
        self._tasks[loop.create_task(self._serve_run(slots, run), context=Context())] = run

    async def _serve_run(self, slots: Slots, run: Run) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        token = current_run.set(run)
        # From here on, not earlier: a task that is cancelled before its first step never runs at all.
        run.stop = partial(self._running_loop().call_soon_threadsafe, task.cancel)
        run.start()
        outcome = await self._executor.run_async(run)
        current_run.reset(token)  # run, its task and the task's context would be a cycle, left to the collector
        del self._tasks[task]
        following = self._following(slots, run, outcome)
        if following is not None:
            self._spawn(slots, following)

    # A blocked loop

    def blocked_for(self) -> float:
        """Seconds for which the loop has not turned. Asked again and again."""
        if self._loop is None or not self._tasks:
            return 0.0
        asked_at = self._asked_at
        if asked_at is None:
            asked_at = self._asked_at = clock.monotonic()
            self._loop.call_soon_threadsafe(self._answer)
        return clock.monotonic() - asked_at

    def _answer(self) -> None:
        self._asked_at = None

    def suspects(self) -> list[Run]:
        """Who may be blocking it: the run whose handler is being executed; all, if it is a task that one of them
        started.
        """
        runs = [run for run in list(self._tasks.values()) if run.coroutine is not None]
        return [run for run in runs if run.coroutine.cr_running] or runs

    def close(self, timeout: float = 1.0) -> None:
        """Stop the loop; a task that blocks it is left behind."""
        self._closing = True
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout)
