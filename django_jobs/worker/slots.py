"""Slots: how many jobs of a group of queues may run at once in this process, and which claimed job starts next.

Claimed jobs wait here, by priority and then in the order they were claimed, until a slot is free. The slot of
a run is given back exactly once, whether the run ended or was given up on.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable
from itertools import count

from django_jobs import clock

from .ledger import Ledger
from .prefetch import Prefetch
from .running import Run


class Slots:
    """Thread-safe. ``queues`` share ``size`` slots."""

    def __init__(self, queues: tuple[str, ...], size: int, ledger: Ledger | None = None) -> None:
        self.queues = queues
        self.size = size
        self.prefetch = Prefetch()
        self._ledger = ledger
        self._lock = threading.Lock()
        self._order = count()
        self._waiting: list[tuple[int, int, Run]] = []
        self._running = 0
        self._ended = 0
        self._last_start = clock.monotonic()

    def add(self, runs: Iterable[Run]) -> None:
        with self._lock:
            for run in runs:
                heapq.heappush(self._waiting, (-run.job.priority, next(self._order), run))

    def take(self) -> Run | None:
        """The next run if a slot is free and a job waits. The clock of an async or isolated run starts when its task
        or process does.
        """
        with self._lock:
            if not self._waiting or self._running >= self.size:
                return None
            self._running += 1
            self._last_start = clock.monotonic()
            run = heapq.heappop(self._waiting)[2]
            if self._ledger is not None:
                self._ledger.note_started(run)
        if not (run.is_async or run.is_isolated):
            run.start()
        return run

    def give_back(self, run: Run) -> bool:
        """Free the run's slot. False if that was done before: then the run's outcome does not count."""
        with self._lock:
            if run.ended:
                return False
            run.ended = True
            self._running -= 1
            self._ended += 1
            return True

    def withdraw(self) -> list[Run]:
        """Take out every job that has not started."""
        with self._lock:
            runs = [run for _, _, run in self._waiting]
            self._waiting.clear()
            for run in runs:
                run.ended = True
        return runs

    def stale(self, patience: float) -> bool:
        """Do jobs wait here although nothing has started for ``patience`` seconds? Somebody else may have a free
        slot.
        """
        return bool(self._waiting) and clock.monotonic() - self._last_start > patience

    @property
    def running(self) -> int:
        return self._running

    @property
    def has_free(self) -> bool:
        return self._running + len(self._waiting) < self.size

    def wanted(self) -> int:
        """How many jobs to claim now: the free slots, and no more unstarted ones than will start at once."""
        with self._lock:
            ended, self._ended = self._ended, 0
            free, waiting = self.size - self._running, len(self._waiting)
        ahead = self.prefetch.allowance(ended)
        if free <= 0 and waiting > ahead // 2:
            return 0
        return max(free + ahead - waiting, 0)
