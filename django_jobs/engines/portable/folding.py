"""Adding the changes of dead jobs up into their groups and hours.

A group's count is taken from its dead jobs and the changes that are left, instead of being added to: where all tables
are emptied one after the other, as ``flush`` does, the trigger leaves changes behind that stand for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import F, Sum
from django.db.models.functions import Greatest, Least

from django_jobs.models import DeadGroup, DeadGroupChange, DeadGroupHour, DeadJob

from .rows import CHUNK

Key = tuple[str, str]


@dataclass(slots=True)
class _Tally:
    """What some changes say of one group."""

    first_seen: datetime
    last_seen: datetime
    texts: dict[str, str] = field(default_factory=dict)
    hours: Counter[datetime] = field(default_factory=Counter)

    def add(self, change: DeadGroupChange) -> None:
        self.first_seen = min(self.first_seen, change.failed_at)
        self.last_seen = max(self.last_seen, change.failed_at)
        if change.change > 0:
            self.texts = {"error_type": change.error_type, "error_summary": change.error_summary}
            self.hours[change.failed_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)] += 1


def fold(alias: str, limit: int, release: str) -> int:
    """In the transaction that is open."""
    changes = list(DeadGroupChange.objects.using(alias).order_by("id")[: min(limit, CHUNK)])
    DeadGroupChange.objects.using(alias).filter(pk__in=[change.pk for change in changes])._raw_delete(alias)
    for key, tally in _tallies(changes).items():
        _add_to_group(alias, key, tally, release)
        for hour, count in tally.hours.items():
            _add_to_hour(alias, key, hour, count)
    return len(changes)


def _tallies(changes: Iterable[DeadGroupChange]) -> dict[Key, _Tally]:
    tallies: dict[Key, _Tally] = {}
    for change in changes:
        key = (change.type, change.fingerprint)
        tallies.setdefault(key, _Tally(change.failed_at, change.failed_at)).add(change)
    return tallies


def _add_to_group(alias: str, key: Key, tally: _Tally, release: str) -> None:
    known = {"type": key[0], "fingerprint": key[1]}
    count = _count_without_changes(alias, known)
    seen = {"first_seen": tally.first_seen, "last_seen": tally.last_seen}
    wider = {"first_seen": Least("first_seen", tally.first_seen), "last_seen": Greatest("last_seen", tally.last_seen)}
    groups = DeadGroup.objects.using(alias)
    if not groups.filter(**known).update(count=count, **wider, **tally.texts):
        groups.create(count=count, first_release=release, **known, **seen, **tally.texts)


def _count_without_changes(alias: str, known: dict[str, str]) -> int:
    left = DeadGroupChange.objects.using(alias).filter(**known).aggregate(sum=Sum("change"))["sum"]
    return DeadJob.objects.using(alias).filter(**known).count() - (left or 0)


def _add_to_hour(alias: str, key: Key, hour: datetime, count: int) -> None:
    type_name, fingerprint = key
    rows = DeadGroupHour.objects.using(alias)
    if not rows.filter(type=type_name, fingerprint=fingerprint, hour=hour).update(count=F("count") + count):
        rows.create(type=type_name, fingerprint=fingerprint, hour=hour, count=count)
