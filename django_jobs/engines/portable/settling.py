"""Writing what became of runs. All of it runs in one IMMEDIATE transaction, so no row changes meanwhile.

The token alone says that a row is ours. A failure of a job whose cancellation was asked for ends it as
cancelled; success stays success.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.chunks import chunks
from django_jobs.engines.error_entry import error_entry
from django_jobs.engines.sanitising import Written
from django_jobs.ids import uuid7
from django_jobs.models import DeadJob, FinalStatus, Job, JobHistory, JobStatus
from django_jobs.outcomes import Buried, Finished, Outcome, Rescheduled

from .rows import CHUNK, Values, copy_rows, delete_rows, update_rows

FIRST_ERRORS, LAST_ERRORS = 2, 8

# Column of the target to column of the job.
TO_HISTORY = {
    "job_id": "id",
    "type": "type",
    "queue": "queue",
    "tenant": "tenant",
    "attempts": "attempts",
    "enqueued_at": "created_at",
    "worker": "locked_by",
}
TO_DEAD_JOBS = {name: name for name in {f.name for f in Job._meta.fields} & {f.name for f in DeadJob._meta.fields}}


class _Held(NamedTuple):
    """What settling has to know of a leased row."""

    id: UUID
    token: int
    attempts: int
    lost_runs: int
    untaken_since: datetime | None
    last_error: str
    errors: list[dict[str, Any]]
    cancel_requested_at: datetime | None


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome], worker: str, now: datetime) -> Written:
    """What does not come back is lost."""
    held = _held_rows(connection.alias, outcomes)
    settling = _Settling(worker, now)
    for outcome in outcomes:
        row = held.pop((outcome.job_id, outcome.token), None)
        if row is not None:
            settling.add(outcome, row)
    settling.write(connection)
    return settling.written


def _held_rows(alias: str, outcomes: Iterable[Outcome]) -> dict[tuple[UUID, int], _Held]:
    held: dict[tuple[UUID, int], _Held] = {}
    for chunk in chunks((outcome.job_id for outcome in outcomes), CHUNK):
        rows = Job.objects.using(alias).filter(id__in=chunk, lease_token__isnull=False)
        columns = (
            "id",
            "lease_token",
            "attempts",
            "lost_runs",
            "untaken_since",
            "last_error",
            "errors",
            "cancel_requested_at",
        )
        held |= {(row[0], row[1]): _Held(*row) for row in rows.values_list(*columns)}
    return held


class _Settling:
    """Gathers the rows to write; ``write`` writes them, a statement or two for each kind of ending."""

    def __init__(self, worker: str, now: datetime) -> None:
        self.written: Written = {}
        self._worker = worker
        self._now = now
        self._finished: dict[UUID, Values] = {}
        self._again: dict[UUID, Values] = {}
        self._buried: dict[UUID, Values] = {}

    def add(self, outcome: Outcome, row: _Held) -> None:
        match outcome:
            case Finished():
                self._finish(outcome, row, outcome.status, outcome.result, outcome.metrics)
            case _ if row.cancel_requested_at is not None:
                self._finish(outcome, row, FinalStatus.CANCELLED)
            case Rescheduled():
                self._reschedule(outcome, row)
            case Buried():
                self._bury(outcome, row)

    def write(self, connection: BaseDatabaseWrapper) -> None:
        update_rows(connection, Job, self._again)
        copy_rows(connection, Job, JobHistory, TO_HISTORY, self._finished)
        copy_rows(connection, Job, DeadJob, TO_DEAD_JOBS, self._buried)
        delete_rows(connection, Job, [*self._finished, *self._buried])

    def _finish(self, outcome: Outcome, row: _Held, status: str, result: Any = None, metrics: Any = None) -> None:
        self.written[row.id, row.token] = str(status)
        self._finished[row.id] = {
            "id": uuid7(),
            "status": status,
            "started_at": self._now - timedelta(milliseconds=outcome.duration_ms),
            "finished_at": self._now,
            "duration_ms": outcome.duration_ms,
            "result": result,
            "metrics": metrics,
            "errors": self._errors(outcome, row),
        }

    def _reschedule(self, outcome: Rescheduled, row: _Held) -> None:
        self.written[row.id, row.token] = None
        self._again[row.id] = {
            "status": JobStatus.SCHEDULED,
            "run_at": self._now + outcome.delay,
            "locked_by": "",
            "locked_until": None,
            "lease_token": None,
            "attempts": max(row.attempts - outcome.refund, 0),
            "lost_runs": row.lost_runs + (outcome.why == "lost"),
            "untaken_since": self._untaken_since(outcome, row),
            "last_error": row.last_error if outcome.failure is None else outcome.failure.summary,
            "errors": self._errors(outcome, row),
        }

    def _untaken_since(self, outcome: Rescheduled, row: _Held) -> datetime | None:
        if outcome.why == "untaken":
            return row.untaken_since or self._now
        return row.untaken_since if outcome.why == "handed_back" else None

    def _bury(self, outcome: Buried, row: _Held) -> None:
        self.written[row.id, row.token] = "dead"
        self._buried[row.id] = {
            "failed_at": self._now,
            "reason": outcome.reason,
            "lost_runs": row.lost_runs + (outcome.reason == "worker_lost"),
            "error_type": outcome.failure.error_type[:200],
            "error_summary": outcome.failure.summary,
            "fingerprint": outcome.fingerprint,
            "last_error": outcome.failure.message,
            "errors": self._errors(outcome, row),
        }

    def _errors(self, outcome: Outcome, row: _Held) -> list[dict[str, Any]]:
        """With this run's failure: the first 2 and the last 8."""
        if outcome.failure is None:
            return row.errors
        entry = error_entry(outcome.failure, self._worker, outcome.duration_ms)
        errors = [*row.errors, entry | {"at": self._now.isoformat(), "attempt": row.attempts}]
        return errors[:FIRST_ERRORS] + errors[FIRST_ERRORS:][-LAST_ERRORS:]
