"""The threads that run ``def`` handlers. Made when needed, kept for the next run, never joined without a deadline.

Daemon threads of our own, because a thread that never returns must not keep the process from ending.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from django_jobs import clock

from .executor import Ended, Executor
from .hygiene import close_connections
from .running import Run
from .slots import Slots

Next = Callable[[Slots, Run, Ended], Run | None]
Start = Callable[[Slots, Run], object]


class Threads:
    """``start_elsewhere`` starts a run in another thread, or sees to it if there is none to be had."""

    def __init__(self, executor: Executor, following: Next, start_elsewhere: Start) -> None:
        self._executor = executor
        self._following = following
        self._start_elsewhere = start_elsewhere
        self._work: SimpleQueue[tuple[Slots, Run] | None] = SimpleQueue()
        self._idle: deque[None] = deque()
        self._threads: list[threading.Thread] = []

    def start(self, slots: Slots, run: Run) -> None:
        """Run it in an idle thread, or in a new one. How many there are is the slots' business. Raises RuntimeError
        where the system gives no more.
        """
        if not self._take_idle():
            thread = threading.Thread(target=self._serve, name=f"django_jobs run {len(self._threads) + 1}", daemon=True)
            thread.start()
            self._threads.append(thread)
        self._work.put((slots, run))

    def _take_idle(self) -> bool:
        try:
            self._idle.pop()
        except IndexError:
            return False
        return True

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
            following = self._run(slots, run, rested=True)
            while following is not None:
                following = self._run(slots, following, rested=False)
        close_connections()

    def _run(self, slots: Slots, run: Run, *, rested: bool) -> Run | None:
        """Counts as idle before its slot is free: whoever takes that needs no further thread, nor its connection."""
        outcome = self._executor.run(run, rested=rested)
        self._idle.append(None)
        following = self._following(slots, run, outcome)
        if following is None or self._take_idle():
            return following
        self._start_elsewhere(slots, following)
        return None
