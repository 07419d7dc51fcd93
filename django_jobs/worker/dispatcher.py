"""Brings claimed jobs to where they run: threads for ``def`` handlers, one event loop for ``async def``.

Whoever ends a run starts the next one of its group in the same place if it can, so a busy process hands nothing over.
"""

from __future__ import annotations

from collections.abc import Callable

from django_jobs.logs import get_logger

from .endings import HAND_BACK_DELAY, handed_back
from .executor import Ended, Executor
from .running import Run
from .slots import Slots
from .tasks import Tasks
from .threads import Threads

logger = get_logger("django_jobs.worker")


class Dispatcher:
    """``post`` receives each run with its outcome, from any thread; the loop puts itself there."""

    post: Callable[[Run, Ended], None]

    def __init__(self, executor: Executor) -> None:
        self.threads = Threads(executor, self._next, self._start)
        self.tasks = Tasks(executor, self._next)

    def fill(self, slots: Slots) -> None:
        """Start waiting jobs while there are free slots."""
        while (run := slots.take()) is not None and self._start(slots, run):
            pass

    def give_up(self, slots: Slots, run: Run, outcome: Ended) -> bool:
        """End a run that did not end by itself; its slot is free again. False if it just ended."""
        if not slots.give_back(run):
            return False
        run.lost = True
        self.post(run, outcome)
        self.fill(slots)
        return True

    def close(self, timeout: float) -> None:
        """Wait for threads to end, up to ``timeout`` seconds each for the two kinds."""
        self.threads.close(timeout)
        self.tasks.close(timeout)

    def _start(self, slots: Slots, run: Run) -> bool:
        """False if the system has no thread left for it: the job goes back, and what runs goes on."""
        try:
            (self.tasks if run.is_async else self.threads).start(slots, run)
        except (RuntimeError, OSError) as error:
            logger.error("Job %s (%s) cannot be started here and is handed back: %s", run.job.id, run.job.type, error)
            slots.give_back(run)
            self.post(run, handed_back(run.job, HAND_BACK_DELAY))
            return False
        return True

    def _next(self, slots: Slots, run: Run, outcome: Ended) -> Run | None:
        """Called where ``run`` ended: a run of the same kind to go on with, or None."""
        run.returned = True
        if not slots.give_back(run):
            return None
        self.post(run, outcome)
        following = slots.take()
        if following is not None and following.is_async != run.is_async:
            self._start(slots, following)
            return None
        return following
