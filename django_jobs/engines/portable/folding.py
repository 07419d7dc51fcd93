"""Adding the changes of dead jobs up into their groups and hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import F
from django.db.models.functions import Greatest, Least

from django_jobs.models import DeadGroup, DeadGroupChange, DeadGroupHour

from .rows import CHUNK

Key = tuple[str, str]


@dataclass(slots=True)
class _Tally:
    """What some changes say of one group."""

    first_seen: datetime
    last_seen: datetime
    count: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    hours: Counter[datetime] = field(default_factory=Counter)

    def add(self, change: DeadGroupChange) -> None:
        self.count += change.change
        self.first_seen = min(self.first_seen, change.failed_at)
        self.last_seen = max(self.last_seen, change.failed_at)
        if change.change > 0:
            self.texts = {"error_type": change.error_type, "error_summary": change.error_summary}
            self.hours[change.failed_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)] += 1


def fold(alias: str, limit: int, release: str) -> int:
    """In the transaction that is open."""
    changes = list(DeadGroupChange.objects.using(alias).order_by("id")[: min(limit, CHUNK)])
    for key, tally in _tallies(changes).items():
        _add_to_group(alias, key, tally, release)
        for hour, count in tally.hours.items():
            _add_to_hour(alias, key, hour, count)
    DeadGroupChange.objects.using(alias).filter(pk__in=[change.pk for change in changes])._raw_delete(alias)
    return len(changes)


def _tallies(changes: Iterable[DeadGroupChange]) -> dict[Key, _Tally]:
    tallies: dict[Key, _Tally] = {}
    for change in changes:
        key = (change.type, change.fingerprint)
        tallies.setdefault(key, _Tally(change.failed_at, change.failed_at)).add(change)
    return tallies


def _add_to_group(alias: str, key: Key, tally: _Tally, release: str) -> None:
    type_name, fingerprint = key
    groups = DeadGroup.objects.using(alias)
    changes = {
        "count": F("count") + tally.count,
        "first_seen": Least("first_seen", tally.first_seen),
        "last_seen": Greatest("last_seen", tally.last_seen),
        **tally.texts,
    }
    if not groups.filter(type=type_name, fingerprint=fingerprint).update(**changes):
        groups.create(
            type=type_name,
            fingerprint=fingerprint,
            count=tally.count,
            first_seen=tally.first_seen,
            last_seen=tally.last_seen,
            first_release=release,
            **tally.texts,
        )


def _add_to_hour(alias: str, key: Key, hour: datetime, count: int) -> None:
    type_name, fingerprint = key
    rows = DeadGroupHour.objects.using(alias)
    if not rows.filter(type=type_name, fingerprint=fingerprint, hour=hour).update(count=F("count") + count):
        rows.create(type=type_name, fingerprint=fingerprint, hour=hour, count=count)
