"""Adds up old counts: after an hour the processes of each minute, after two days the minutes of each hour.

Whoever sums over a time range finds the same numbers before and after, to the hour. A bucket is read, added up and
written back in one transaction. A process that was cut off from the database for over an hour may write a minute again
that was added up; these are numbers for people.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from django_jobs.models import JobCount

ALL_PROCESSES = ""
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Rows of buckets that ended ``after`` ago become one for each ``bucket``. Only ``window`` before that is looked
    at, so that a look stays cheap.
    """

    bucket: timedelta
    after: timedelta
    window: timedelta


LEVELS = (
    Level(bucket=MINUTE, after=HOUR, window=timedelta(hours=6)),
    Level(bucket=HOUR, after=timedelta(days=2), window=timedelta(days=2)),
)


def roll_up(alias: str, now: datetime, level: Level) -> int:
    """Add up the oldest bucket of the level that has not been. Returns how many rows it had."""
    end = _start_of(now - level.after, level.bucket)
    rows = JobCount.objects.using(alias).filter(minute__gte=end - level.window, minute__lt=end)
    first = _not_added_up(rows, level).order_by("minute").values_list("minute", flat=True).first()
    if first is None:
        return 0
    start = _start_of(first, level.bucket)
    with transaction.atomic(using=alias):
        bucket = JobCount.objects.using(alias).filter(minute__gte=start, minute__lt=start + level.bucket)
        before = list(bucket.select_for_update())
        bucket.filter(pk__in=[row.pk for row in before])._raw_delete(alias)
        JobCount.objects.using(alias).bulk_create(_added_up(before, start))
    return len(before)


def _not_added_up(rows: QuerySet[JobCount], level: Level) -> QuerySet[JobCount]:
    if level.bucket == MINUTE:
        return rows.exclude(process=ALL_PROCESSES)
    return rows.exclude(minute__minute=0, process=ALL_PROCESSES)


def _start_of(instant: datetime, bucket: timedelta) -> datetime:
    start = instant.replace(second=0, microsecond=0)
    return start.replace(minute=0) if bucket == HOUR else start


def _added_up(rows: Iterable[JobCount], start: datetime) -> list[JobCount]:
    sums: dict[tuple[str, str, str], JobCount] = {}
    for row in rows:
        key = row.queue, row.type, row.outcome
        if key in sums:
            _add(sums[key], row)
        else:
            sums[key] = _copy(row, start)
    return list(sums.values())


def _copy(row: JobCount, start: datetime) -> JobCount:
    return JobCount(
        minute=start,
        process=ALL_PROCESSES,
        queue=row.queue,
        type=row.type,
        outcome=row.outcome,
        count=row.count,
        total_ms=row.total_ms,
        histogram=list(row.histogram),
    )


def _add(total: JobCount, row: JobCount) -> None:
    total.count += row.count
    total.total_ms += row.total_ms
    total.histogram = [a + b for a, b in zip(total.histogram, row.histogram, strict=True)]
