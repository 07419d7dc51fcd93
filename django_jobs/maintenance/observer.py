"""Notes what succeeded, when and with which numbers: for every schedule, and for the job types that declare what they
expect.

It reads the history from where it stopped, a bounded slice a turn, by ranges of ids. A little is read twice, because a
row may be committed a moment after the time in its id; nothing counts twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from django_jobs.chunks import chunks
from django_jobs.conf import Settings
from django_jobs.engines import statements
from django_jobs.engines.protocol import Session
from django_jobs.expectations import usual_of
from django_jobs.ids import lowest_uuid7
from django_jobs.models import Bookmark, FinalStatus, JobHistory, Schedule, ScheduleSlot, TypeRecord
from django_jobs.policy import JobType
from django_jobs.registry import registry

from .database import brief_transaction, connection_for_a_turn
from .service import Service

OBSERVER = "observer"

SLICE = timedelta(minutes=10)
OVERLAP = timedelta(minutes=2)
FARTHEST_BACK = timedelta(days=3)
CATCHING_UP = timedelta(seconds=1)

RECENT = 20
BATCH = 500
NOTED = ("last_success_at", "last_metrics", "usual_metrics", "recent_metrics")


class _Success(NamedTuple):
    id: UUID
    job_id: UUID
    finished_at: datetime
    metrics: dict[str, Any] | None


class Observer(Service):
    name = "observer"

    def __init__(self, settings: Settings) -> None:
        self._alias = settings.database
        self._every = settings.watch_every
        self.pause = settings.watch_every

    def run_once(self, session: Session) -> int:
        self.pause = self._every
        with connection_for_a_turn(self._alias) as connection, brief_transaction(self._alias):
            return self._read_on(statements(self._alias).server_time(connection))

    def _read_on(self, now: datetime) -> int:
        bookmark = Bookmark.objects.using(self._alias).filter(pk=OBSERVER).first()
        start = now if bookmark is None else max(bookmark.at, now - FARTHEST_BACK)
        end = min(start + SLICE, now)
        if end < now:
            self.pause = CATCHING_UP
        successes = JobHistory.objects.using(self._alias).filter(
            pk__gte=lowest_uuid7(start - OVERLAP), pk__lt=lowest_uuid7(end), status=FinalStatus.SUCCEEDED
        )
        noted = self._note_types(successes) + self._note_schedules(successes)
        Bookmark.objects.using(self._alias).update_or_create(pk=OBSERVER, defaults={"at": end})
        return noted

    # Job types

    def _note_types(self, successes: QuerySet[JobHistory]) -> int:
        watched = {job_type.name: job_type for job_type in registry if job_type.is_watched}
        if not watched:
            return 0
        records = TypeRecord.objects.using(self._alias)
        records.bulk_create([TypeRecord(type=name) for name in watched], ignore_conflicts=True)
        found = records.filter(pk__in=watched)
        return sum(self._note_type(record, watched[record.type], successes) for record in found)

    def _note_type(self, record: TypeRecord, job_type: JobType, successes: QuerySet[JobHistory]) -> int:
        named = successes.filter(type__in=[job_type.name, *job_type.aliases])
        number = _note(record, _newest(named, RECENT))
        if number:
            record.save(using=self._alias)
        return number

    # Schedules

    def _note_schedules(self, successes: QuerySet[JobHistory]) -> int:
        slots = ScheduleSlot.objects.using(self._alias).filter(job_id__in=successes.values("job_id"))
        schedule_of: dict[Any, str] = dict(slots.values_list("job_id", "schedule"))
        found: dict[str, list[_Success]] = defaultdict(list)
        for batch in chunks(schedule_of, BATCH):
            for one in _newest(successes.filter(job_id__in=batch)):
                found[schedule_of[one.job_id]].append(one)
        return sum(self._note_batch(batch, found) for batch in chunks(found, BATCH))

    def _note_batch(self, names: Sequence[str], found: Mapping[str, list[_Success]]) -> int:
        schedules = Schedule.objects.using(self._alias)
        rows = schedules.filter(pk__in=names).only(*NOTED)
        changed = [row for row in rows if _note(row, sorted(found[row.pk], reverse=True)[:RECENT])]
        schedules.bulk_update(changed, NOTED)
        return len(changed)


def _note(record: TypeRecord | Schedule, newest: Sequence[_Success]) -> int:
    """Add what is new of these successes, newest first. Returns how many it was: without numbers 1."""
    known = {entry["id"] for entry in record.recent_metrics}
    oldest = record.recent_metrics[0]["id"] if len(record.recent_metrics) == RECENT else ""
    new = [one for one in newest if one.metrics and str(one.id) not in known and str(one.id) > oldest]
    last = newest[0] if newest else None
    is_later = last is not None and (record.last_success_at is None or last.finished_at > record.last_success_at)
    if last is not None and is_later:
        record.last_success_at, record.last_metrics = last.finished_at, last.metrics
    if new:
        entries = [{"id": str(one.id), "metrics": one.metrics} for one in new]
        record.recent_metrics = sorted([*record.recent_metrics, *entries], key=lambda entry: entry["id"])[-RECENT:]
        record.usual_metrics = usual_of([entry["metrics"] for entry in record.recent_metrics])
    return len(new) or int(is_later)


def _newest(successes: QuerySet[JobHistory], most: int | None = None) -> list[_Success]:
    rows = successes.order_by("-pk").values_list("pk", "job_id", "finished_at", "metrics")[:most]
    return [_Success(*row) for row in rows]
