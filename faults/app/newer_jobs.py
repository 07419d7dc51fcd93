"""Job types that the older build of a rolling deploy does not know."""

import ctypes

from django_jobs import RunningJob, job
from faults.app.jobs import MANY, leave_effect
from faults.journal import note_death, noted


@job("newer", max_attempts=MANY)
def newer(run: RunningJob, seconds: float) -> None:
    with noted(run):
        leave_effect(run)


@job("segfault_isolated", max_attempts=2, isolation="process")
def segfault_isolated(run: RunningJob) -> None:
    with noted(run):
        note_death(run)
        ctypes.string_at(0)
