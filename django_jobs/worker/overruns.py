"""Runs that take too long, and an event loop that stands still. Looked for by the loop, from time to time.

An async run past its time-out is cancelled, an isolated one killed; it has the grace to end. A thread cannot be
stopped: its slot is given up at once. The job of a run that still goes on when it is given up is retried no earlier
than the grace, and if the handler has not ended by then it is stuck and the process must be replaced. So it is when a
cancelled run has left a call in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django_jobs import clock
from django_jobs.logs import get_logger
from django_jobs.outcomes import Outcome

from .endings import overran
from .held import Held
from .running import Run
from .slots import Slots
from .tasks import Tasks

logger = get_logger("django_jobs.worker")

LOOK_SECONDS = 0.25
BLOCKED_SECONDS = 2.0


class Overruns:
    def __init__(self, tasks: Tasks, grace: timedelta) -> None:
        self._tasks = tasks
        self._grace = grace.total_seconds()
        self._next_look = 0.0
        self._next_complaint = 0.0
        self._overdue: list[Run] = []

    def look(self, held: Held) -> Iterator[tuple[Slots, Run, Outcome]]:
        """Yields the runs to give up on, with their outcome. At most every LOOK_SECONDS."""
        now = clock.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        self._complain_of_blocked_loop(now)
        for slots, run in held.snapshot():
            if run.deadline is None or now <= run.deadline or run.ended:
                continue
            if run not in self._overdue:
                self._overdue.append(run)
            if self._is_over(run, now):
                yield slots, run, overran(run)

    def _is_over(self, run: Run, now: float) -> bool:
        """Is there nothing more to wait for? A run that can be ended from outside is told first."""
        if run.stop is None:
            return True
        run.ask_to_stop("timeout")
        return run.deadline is not None and now > run.deadline + self._grace

    @property
    def watching(self) -> bool:
        """Does something still go on, or did a moment ago, of runs that are overdue?"""
        return bool(self._overdue)

    @property
    def stuck(self) -> int:
        """Of how many overdue runs something still goes on after their grace."""
        now = clock.monotonic()
        self._overdue = [run for run in self._overdue if not run.is_gone]
        return sum(run.deadline is not None and now > run.deadline + self._grace for run in self._overdue)

    def _complain_of_blocked_loop(self, now: float) -> None:
        seconds = self._tasks.blocked_for()
        if seconds < BLOCKED_SECONDS or now < self._next_complaint:
            return
        self._next_complaint = now + 10 * BLOCKED_SECONDS
        logger.warning(
            "The event loop has been blocked for %.1f s by %s: no other async job can go on. "
            "Use await, asyncio.to_thread(), or make the handler a def.",
            seconds,
            " or ".join(f"job {run.job.id} ({run.job.type})" for run in self._tasks.suspects()) or "a job",
        )
