"""Notes what succeeded, when and with which numbers: for every schedule, and for the job types that declare what they
expect.

It reads the history from where it stopped, a bounded slice a turn, by ranges of ids. A little is read twice, because a
row may be committed a moment after the time in its id; nothing counts twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connections, transaction
from django.db.models import QuerySet

from django_jobs.conf import Settings
from django_jobs.engines import statements
from django_jobs.engines.protocol import Session
from django_jobs.expectations import usual_of
from django_jobs.ids import lowest_uuid7
from django_jobs.models import Bookmark, FinalStatus, JobHistory, Schedule, ScheduleSlot, TypeRecord
from django_jobs.policy import JobType
from django_jobs.registry import registry

OBSERVER = "observer"

SLICE = timedelta(minutes=10)
OVERLAP = timedelta(minutes=2)
FARTHEST_BACK = timedelta(days=3)
CATCHING_UP = timedelta(seconds=1)

RECENT = 20
# Slots of one schedule that are looked through for its last RECENT successes.
SLOTS = 40
# Schedules whose usual numbers are computed anew in one turn.
MOST_USUAL = 200
BATCH = 500


class _Success(NamedTuple):
    id: UUID
    job_id: UUID
    finished_at: datetime
    metrics: dict[str, Any] | None


class Observer:
    name = "observer"

    def __init__(self, settings: Settings) -> None:
        self._alias = settings.database
        self._every = settings.watch_every
        self.pause = settings.watch_every

    def run_once(self, session: Session) -> int:
        self.pause = self._every
        connection = connections[self._alias]
        try:
            with transaction.atomic(using=self._alias):
                statements(self._alias).wait_briefly(connection)
                return self._read_on(statements(self._alias).server_time(connection))
        finally:
            connection.close()

    def close(self, session: Session) -> None:
        """Nothing to do: whoever leads reads on."""

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
        known = {entry["id"] for entry in record.recent_metrics}
        new = [one for one in _newest(named, RECENT) if str(one.id) not in known]
        if not new:
            return 0
        entries = [{"id": str(one.id), "metrics": one.metrics or {}} for one in reversed(new)]
        record.recent_metrics = sorted([*record.recent_metrics, *entries], key=lambda entry: entry["id"])[-RECENT:]
        if record.last_success_at is None or new[0].finished_at > record.last_success_at:
            record.last_success_at, record.last_metrics = new[0].finished_at, new[0].metrics
        record.usual_metrics = usual_of([entry["metrics"] for entry in record.recent_metrics])
        record.save(using=self._alias)
        return len(new)

    # Schedules

    def _note_schedules(self, successes: QuerySet[JobHistory]) -> int:
        slots = ScheduleSlot.objects.using(self._alias).filter(job_id__in=successes.values("job_id"))
        schedule_of = dict(slots.values_list("job_id", "schedule"))
        latest: dict[str, _Success] = {}
        for batch in _batches(schedule_of):
            for one in _newest(successes.filter(job_id__in=batch)):
                latest.setdefault(schedule_of[one.job_id], one)
        changed = [schedule for batch in _batches(latest) for schedule in self._newer(batch, latest)]
        for schedule in [schedule for schedule in changed if schedule.last_metrics][:MOST_USUAL]:
            schedule.usual_metrics = self._usual(schedule.name)
        Schedule.objects.using(self._alias).bulk_update(
            changed, ["last_success_at", "last_metrics", "usual_metrics"], batch_size=BATCH
        )
        return len(changed)

    def _newer(self, names: Iterable[str], latest: Mapping[str, _Success]) -> Iterable[Schedule]:
        for schedule in Schedule.objects.using(self._alias).filter(pk__in=list(names)):
            success = latest[schedule.name]
            if schedule.last_success_at is None or success.finished_at > schedule.last_success_at:
                schedule.last_success_at, schedule.last_metrics = success.finished_at, success.metrics
                yield schedule

    def _usual(self, name: str) -> dict[str, float]:
        slots = ScheduleSlot.objects.using(self._alias).filter(schedule=name, job_id__isnull=False)
        jobs = [job for job in slots.order_by("-slot").values_list("job_id", flat=True)[:SLOTS] if job is not None]
        done = JobHistory.objects.using(self._alias).filter(job_id__in=jobs, status=FinalStatus.SUCCEEDED)
        return usual_of([one.metrics or {} for one in _newest(done, RECENT)])


def _newest(successes: QuerySet[JobHistory], most: int | None = None) -> list[_Success]:
    rows = successes.order_by("-pk").values_list("pk", "job_id", "finished_at", "metrics")[:most]
    return [_Success(*row) for row in rows]


def _batches(items: Iterable[Any]) -> Iterable[list[Any]]:
    every = list(items)
    return [every[start : start + BATCH] for start in range(0, len(every), BATCH)]
