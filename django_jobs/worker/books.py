"""Closes a run once its outcome is written: out of what is held, into the counts and the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from django_jobs.engines.values import Tick
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.outcomes import Outcome, Rescheduled, Settled

from .held import Held
from .reporting import final_status, log_run
from .running import Run

logger = get_logger("django_jobs.worker")


# Jobs that are due later are seen by whoever leads the maintenance.
SOON = timedelta(seconds=5)


class Books:
    """``ended``: how many runs that had started were closed here. ``due_in`` hears after how many seconds a job is due
    that this process has put back.
    """

    def __init__(self, held: Held, counts: Counts, due_in: Callable[[float], None]) -> None:
        self.ended = 0
        self._held = held
        self._counts = counts
        self._due_in = due_in

    def close(self, outcomes: Sequence[Outcome], tick: Tick) -> None:
        """What a tick made of ``outcomes``. Those that were busy stay open."""
        busy = {(outcome.job_id, outcome.token) for outcome in tick.busy}
        lost = {(outcome.job_id, outcome.token) for outcome in tick.lost}
        for outcome in outcomes:
            lease = (outcome.job_id, outcome.token)
            if isinstance(outcome, Rescheduled) and outcome.delay < SOON and lease not in busy:
                self._due_in(outcome.delay.total_seconds())
            held = None if lease in busy else self._held.remove(*lease)
            if held is None:
                continue
            if lease in lost:
                self._count_stale(held[1])
            else:
                self._record(held[1], outcome, final_status(outcome, tick.written[outcome.job_id]))

    def close_settled(self, run: Run, outcome: Settled) -> None:
        """The handler's own transaction completed the job."""
        self._held.remove(run.job.id, run.job.token)
        self._record(run, outcome, "succeeded")

    def close_lost(self, run: Run) -> None:
        """The run found out by itself that its lease is lost."""
        self._held.remove(run.job.id, run.job.token)
        self._counts.add(run.job.queue, run.job.type, "stale", run.duration_ms)

    def _record(self, run: Run, outcome: Outcome | Settled, status: str) -> None:
        self.ended += run.started > 0
        self._counts.add(run.job.queue, run.job.type, status, outcome.duration_ms)
        log_run(run, outcome, status)

    def _count_stale(self, run: Run) -> None:
        """Not as ``lost``: who rescued the job has counted that."""
        logger.warning(
            "Job %s (%s), attempt %d: its outcome changed nothing: the lease is lost, or the job is settled already.",
            run.job.id,
            run.job.type,
            run.job.attempt,
        )
        self._counts.add(run.job.queue, run.job.type, "stale", run.duration_ms)
