"""What the dead jobs have in common: groups by type and fingerprint, with exact counts at any time.

Counts and times come from the groups and the changes that have not been added up yet, in one statement: no page
counts dead jobs. What a sample of the newest jobs shows (tenants, attempts, reasons) says of how many it speaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import connections
from django.db.models import Count, Sum
from django.db.models.functions import TruncHour

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.exceptions import InvalidOption
from django_jobs.models import DeadGroup, DeadGroupChange, DeadGroupHour, DeadJob

from .lookup import JobInfo, dead_info

Order = Literal["count", "last_seen", "first_seen"]
ORDERS = ("count", "last_seen", "first_seen")
SAMPLE = 1000
MOST = 500
LONGEST_CHART = 168  # hours that are kept
HOUR = timedelta(hours=1)

_GROUPS = """
SELECT page.*,
       (SELECT d.id FROM django_jobs_dead_job d
         WHERE d.type = page.type AND d.fingerprint = page.fingerprint
         ORDER BY d.failed_at DESC LIMIT 1) AS sample_id
  FROM (
    SELECT min(id) AS id, type, fingerprint, sum(count) AS count, min(first_seen) AS first_seen,
           max(last_seen) AS last_seen, max(first_release) AS first_release, max(error_type) AS error_type,
           max(error_summary) AS error_summary
      FROM (SELECT id, type, fingerprint, count, first_seen, last_seen, first_release, error_type, error_summary
              FROM django_jobs_dead_group
             UNION ALL
            SELECT NULL, type, fingerprint, change, failed_at, failed_at, '', error_type, error_summary
              FROM django_jobs_dead_group_change) AS parts
     WHERE {conditions}
     GROUP BY type, fingerprint
    HAVING sum(count) > 0 AND {text}
     ORDER BY {order} DESC, type, fingerprint
     LIMIT %(limit)s OFFSET %(offset)s) AS page
 ORDER BY {order} DESC, type, fingerprint
"""

_NEW_GROUPS = """
SELECT count(*)
  FROM (SELECT type, fingerprint
          FROM (SELECT type, fingerprint, count, first_release
                  FROM django_jobs_dead_group
                 UNION ALL
                SELECT type, fingerprint, change, NULL
                  FROM django_jobs_dead_group_change) AS parts
         GROUP BY type, fingerprint
        HAVING sum(count) > 0 AND coalesce(max(first_release), %(release)s) = %(release)s) AS new_groups
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroupInfo:
    """Dead jobs of one type whose failures look the same. ``count`` is how many there are now.

    ``first_seen`` and ``last_seen`` are deaths, also of jobs that have been retried or discarded since. ``is_new``:
    first seen in the present ``DJANGO_JOBS["RELEASE"]``. ``per_hour``: deaths in each hour, the present one last.
    ``sample_id`` is the job that died last, of those still dead; None if it went while we looked.
    """

    type: str
    fingerprint: str
    count: int
    first_seen: datetime
    last_seen: datetime
    error_type: str
    error_summary: str
    first_release: str
    is_new: bool
    per_hour: tuple[int, ...]
    sample_id: UUID | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroupPage:
    """``more``: there are groups after these."""

    groups: tuple[DeadGroupInfo, ...]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroupDetail:
    """A group and what its newest jobs show. ``tenants``, ``queues``, ``reasons`` and ``attempts`` map a value to how
    many of the ``looked_at`` newest jobs have it, the commonest first. ``sample`` is the job that died last.
    """

    group: DeadGroupInfo
    sample: JobInfo | None
    looked_at: int
    tenants: dict[str, int]
    queues: dict[str, int]
    reasons: dict[str, int]
    attempts: dict[int, int]

    @property
    def traceback(self) -> str:
        """Of the sample's last attempt; empty where nothing was raised."""
        errors = self.sample.errors if self.sample else ()
        return errors[-1].get("traceback", "") if errors else ""

    @property
    def is_partial(self) -> bool:
        """Are there jobs in the group that were not looked at?"""
        return self.looked_at < self.group.count


def dead_groups(
    *,
    type: str | None = None,
    error: str | None = None,
    order: Order = "count",
    hours: int = 24,
    limit: int = 25,
    offset: int = 0,
) -> DeadGroupPage:
    """The groups there are, the largest, latest or newest first. ``error``: part of the error's type or first line.

    Raises InvalidOption.
    """
    _check(order, hours, limit, offset)
    terms = {"limit": limit + 1, "offset": offset, "type": type, "error": f"%{_escaped(error or '')}%"}
    rows = _rows(terms, order, by_type=type is not None, by_error=bool(error))
    return DeadGroupPage(groups=tuple(_infos(rows[:limit], hours)), more=len(rows) > limit)


def dead_group(type: str, fingerprint: str, *, hours: int = LONGEST_CHART) -> DeadGroupDetail | None:
    """One group with its sample; None if none of its jobs is dead (any more)."""
    _check("count", hours, 1, 0)
    terms = {"limit": 1, "offset": 0, "type": type, "fingerprint": fingerprint}
    rows = _rows(terms, "count", by_type=True, by_fingerprint=True)
    if not rows:
        return None
    (group,) = _infos(rows, hours)
    return _detail(group)


def dead_count(*, type: str | None = None, fingerprint: str | None = None) -> int:
    """How many jobs are dead, exactly, without counting them; of one type or fingerprint if that is given."""
    alias = get_settings().database
    terms = {"type": type, "fingerprint": fingerprint}
    group = {name: value for name, value in terms.items() if value is not None}
    groups = DeadGroup.objects.using(alias).filter(**group).values_list(Sum("count"))
    changes = DeadGroupChange.objects.using(alias).filter(**group).values_list(Sum("change"))
    return sum(total or 0 for (total,) in groups.union(changes, all=True))


def new_group_count() -> int | None:
    """How many groups were first seen in the present ``DJANGO_JOBS["RELEASE"]``; None if that is not set."""
    release = get_settings().release
    if not release:
        return None
    connection = connections[get_settings().database]
    with connection.cursor() as cursor:
        cursor.execute(_NEW_GROUPS, {"release": release})
        count: int = cursor.fetchone()[0]
    return count


def _check(order: str, hours: int, limit: int, offset: int) -> None:
    if order not in ORDERS:
        raise InvalidOption(f"Groups have no order {order!r}; there are {', '.join(ORDERS)}.")
    if not 1 <= hours <= LONGEST_CHART:
        raise InvalidOption(f"hours must be 1 to {LONGEST_CHART}, not {hours!r}: older hours are not kept.")
    if not 1 <= limit <= MOST or offset < 0:
        raise InvalidOption(f"limit must be 1 to {MOST} and offset at least 0, not {limit!r} and {offset!r}.")


def _rows(
    terms: dict[str, Any], order: str, *, by_type: bool = False, by_fingerprint: bool = False, by_error: bool = False
) -> list[Any]:
    conditions = ["1 = 1", *["type = %(type)s"] * by_type, *["fingerprint = %(fingerprint)s"] * by_fingerprint]
    text = "lower(max(error_type) || ' ' || max(error_summary)) LIKE lower(%(error)s) ESCAPE '\\'"
    sql = _GROUPS.format(conditions=" AND ".join(conditions), text=text if by_error else "1 = 1", order=order)
    return list(DeadGroup.objects.using(get_settings().database).raw(sql, terms))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _infos(rows: Sequence[Any], hours: int) -> Iterable[DeadGroupInfo]:
    release = get_settings().release
    charts = _charts(rows, hours)
    reasons = _reasons([row.sample_id for row in rows])
    for row in rows:
        yield DeadGroupInfo(
            type=row.type,
            fingerprint=row.fingerprint,
            count=int(row.count),
            first_seen=row.first_seen,
            last_seen=row.last_seen,
            error_type=row.error_type,
            error_summary=row.error_summary,
            first_release=row.first_release if row.pk is not None else release,
            is_new=bool(release) and (row.pk is None or row.first_release == release),
            per_hour=charts[row.type, row.fingerprint],
            sample_id=_uuid(row.sample_id),
            reason=reasons.get(_uuid(row.sample_id), ""),
        )


def _uuid(value: Any) -> UUID | None:
    """SQLite knows no UUIDs, and a raw query does not say that the column is one."""
    return UUID(value) if isinstance(value, str) else value


def _reasons(ids: Collection[Any]) -> dict[UUID | None, str]:
    samples = DeadJob.objects.using(get_settings().database).filter(pk__in=[key for key in ids if key])
    return dict(samples.values_list("id", "reason"))


def _charts(rows: Sequence[Any], hours: int) -> dict[tuple[str, str], tuple[int, ...]]:
    """Deaths by hour, of these groups."""
    last = clock.now().replace(minute=0, second=0, microsecond=0)
    starts = [last - n * HOUR for n in reversed(range(hours))]
    counts: Counter[tuple[str, str, datetime]] = Counter()
    for type_name, fingerprint, hour, count in _hours(rows, starts[0]):
        counts[type_name, fingerprint, min(hour.astimezone(UTC), last)] += count
    keys = [(row.type, row.fingerprint) for row in rows]
    return {key: tuple(counts[(*key, start)] for start in starts) for key in keys}


def _hours(rows: Sequence[Any], since: datetime) -> Iterable[tuple[str, str, datetime, int]]:
    alias = get_settings().database
    these = {"type__in": {row.type for row in rows}, "fingerprint__in": {row.fingerprint for row in rows}}
    kept = DeadGroupHour.objects.using(alias).filter(hour__gte=since, **these)
    yield from kept.values_list("type", "fingerprint", "hour", "count")
    fresh = DeadGroupChange.objects.using(alias).filter(change=1, failed_at__gte=since, **these)
    by_hour = fresh.order_by().values("type", "fingerprint", hour=TruncHour("failed_at", tzinfo=UTC))
    yield from by_hour.annotate(count=Count("id")).values_list("type", "fingerprint", "hour", "count")


def _detail(group: DeadGroupInfo) -> DeadGroupDetail:
    jobs = DeadJob.objects.using(get_settings().database).filter(type=group.type, fingerprint=group.fingerprint)
    newest = jobs.order_by("-failed_at", "-id")
    looked_at = list(newest.values_list("tenant", "queue", "reason", "attempts")[:SAMPLE])
    tenants, queues, reasons, attempts = zip(*looked_at, strict=True) if looked_at else ((), (), (), ())
    sample = newest.first()
    return DeadGroupDetail(
        group=group,
        sample=dead_info(sample) if sample else None,
        looked_at=len(looked_at),
        tenants=dict(Counter(tenants).most_common()),
        queues=dict(Counter(queues).most_common()),
        reasons=dict(Counter(reasons).most_common()),
        attempts=dict(Counter(attempts).most_common()),
    )
