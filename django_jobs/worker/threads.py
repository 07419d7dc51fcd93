"""The threads that run ``def`` handlers. Made when needed, kept for the next run, never joined without a deadline.

Daemon threads of our own, because a thread that never returns must not keep the process from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from django_jobs import clock

from .executor import Ended, Executor
from .hygiene import close_connections
from .running import Run
from .slots import Slots

Next = Callable[[Slots, Run, Ended], Run | None]


class Threads:
    def __init__(self, executor: Executor, following: Next) -> None:
        self._executor = executor
        self._following = following
        self._work: SimpleQueue[tuple[Slots, Run] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def start(self, slots: Slots, run: Run) -> None:
        """Run it in an idle thread, or in a new one. How many there are is the slots' business. Raises RuntimeError
        where the system gives no more.
        """
        if not self._idle.acquire(blocking=False):
            thread = threading.Thread(target=self._serve, name=f"django_jobs run {len(self._threads) + 1}", daemon=True)
            thread.start()
            self._threads.append(thread)
        self._work.put((slots, run))

    def close(self, timeout: float) -> None:
        """Let idle threads end. Those that never return are left behind."""
        for _ in self._threads:
            self._work.put(None)
        end = clock.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(end - clock.monotonic(), 0.0))

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            slots, run = work
            following = self._following(slots, run, self._executor.run(run, rested=True))
            while following is not None:
                run = following
                following = self._following(slots, run, self._executor.run(run, rested=False))
            self._idle.release()
        close_connections()
