"""Clocks that do not agree. SQLite has one machine's."""

from datetime import timedelta

from django.db.models import F

from django_jobs.models import JobHistory
from faults import journal
from faults.app.jobs import record
from faults.arena import Arena
from faults.fault import fault

HOUR = 3600
DELAY = 1.5


@fault("postgresql")
def skewed_clocks(arena: Arena) -> None:
    """One worker's clock is an hour ahead, another's an hour behind, the enqueuer's half an hour ahead."""
    for shift in (HOUR, -HOUR, 0):
        arena.start_worker(FAULTS_CLOCK_SHIFT=str(shift))
    for worker in arena.workers:
        worker.wait_for_workers(1)
    arena.start_load(FAULTS_CLOCK_SHIFT=str(HOUR / 2))
    for _ in arena.rounds(short=1, long=10):
        long_run = arena.order(record, seconds=1.3 * arena.lease)
        before = journal.now()
        delayed = [arena.order(record.using(delay=timedelta(seconds=DELAY)), seconds=0) for _ in range(10)]
        arena.wait_until_ended(long_run, *delayed)
        starts = [run.started_at for run in journal.noted_runs() if run.job_id in delayed]
        arena.expect(
            min(starts) - before >= DELAY, f"A job started {min(starts) - before:.2f} s after it was enqueued."
        )
    wrong = JobHistory.objects.filter(duration_ms__lt=0) | JobHistory.objects.filter(finished_at__lt=F("started_at"))
    arena.expect(not wrong.exists(), "A run ended before it began.")
