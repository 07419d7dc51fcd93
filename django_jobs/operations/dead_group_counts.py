"""Adds the changes of dead jobs up into their groups. Called by maintenance; safe in any number of processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Least

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.models import DeadGroup, DeadGroupChange, DeadGroupHour

BATCH = 500
HOURS_KEPT = timedelta(days=8)
EMPTY_GROUPS_KEPT = timedelta(days=180)


@dataclass(slots=True)
class _Tally:
    """What a batch of changes says of one group."""

    first_seen: datetime
    last_seen: datetime
    count: int = 0
    error_type: str = ""
    error_summary: str = ""
    hours: dict[datetime, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, change: DeadGroupChange) -> None:
        self.count += change.change
        self.first_seen = min(self.first_seen, change.failed_at)
        self.last_seen = max(self.last_seen, change.failed_at)
        if change.change > 0:
            self.error_type, self.error_summary = change.error_type, change.error_summary
            self.hours[change.failed_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)] += 1


def fold_changes() -> int:
    """Add up to BATCH changes up, in one transaction; returns how many there were.

    Changes that another process holds are passed over. Groups are written in the order of their keys, so that two
    processes may wait for each other, but never in a circle.
    """
    alias = get_settings().database
    with transaction.atomic(using=alias):
        taken = DeadGroupChange.objects.using(alias).select_for_update(skip_locked=True)
        changes = list(taken.order_by("id")[:BATCH])
        for (type_name, fingerprint), tally in sorted(_tallies(changes).items()):
            _add_to_group(type_name, fingerprint, tally, alias)
            for hour, count in sorted(tally.hours.items()):
                _add_to_hour(type_name, fingerprint, hour, count, alias)
        folded = DeadGroupChange.objects.using(alias).filter(pk__in=[change.pk for change in changes])
        folded._raw_delete(alias)
    return len(changes)


def forget_old_groups() -> int:
    """Delete hours that no chart shows, and groups that have been empty for half a year; returns how many."""
    alias, now = get_settings().database, clock.now()
    hours = DeadGroupHour.objects.using(alias).filter(hour__lt=now - HOURS_KEPT)
    groups = DeadGroup.objects.using(alias).filter(count=0, last_seen__lt=now - EMPTY_GROUPS_KEPT)
    return sum(stale.delete()[0] for stale in (hours, groups))


def _tallies(changes: Iterable[DeadGroupChange]) -> dict[tuple[str, str], _Tally]:
    tallies: dict[tuple[str, str], _Tally] = {}
    for change in changes:
        key = (change.type, change.fingerprint)
        tallies.setdefault(key, _Tally(change.failed_at, change.failed_at)).add(change)
    return tallies


def _add_to_group(type_name: str, fingerprint: str, tally: _Tally, alias: str) -> None:
    group = DeadGroup.objects.using(alias).filter(type=type_name, fingerprint=fingerprint)
    texts = {"error_type": tally.error_type, "error_summary": tally.error_summary} if tally.hours else {}
    changes = {
        "count": F("count") + tally.count,
        "first_seen": Least("first_seen", tally.first_seen),
        "last_seen": Greatest("last_seen", tally.last_seen),
        **texts,
    }
    if not group.update(**changes):
        new = DeadGroup(
            type=type_name,
            fingerprint=fingerprint,
            first_seen=tally.first_seen,
            last_seen=tally.last_seen,
            first_release=get_settings().release,
        )
        DeadGroup.objects.using(alias).bulk_create([new], ignore_conflicts=True)
        group.update(**changes)


def _add_to_hour(type_name: str, fingerprint: str, hour: datetime, count: int, alias: str) -> None:
    rows = DeadGroupHour.objects.using(alias)
    this = rows.filter(type=type_name, fingerprint=fingerprint, hour=hour)
    if not this.update(count=F("count") + count):
        rows.bulk_create([DeadGroupHour(type=type_name, fingerprint=fingerprint, hour=hour)], ignore_conflicts=True)
        this.update(count=F("count") + count)
