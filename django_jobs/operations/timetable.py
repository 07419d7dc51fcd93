"""Which slots a schedule has, and which of those that passed are still fired. Pure: reads no clock and no table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256

from django_jobs import cron as cron_rules
from django_jobs.models import CatchUp, Schedule

MOMENT = timedelta(microseconds=1)
SKIP_GRACE = timedelta(minutes=1)
FIRST_WINDOW = timedelta(minutes=1)
WINDOW_GROWTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """Slots are instants in UTC, from ``start_at`` to ``end_at``, both included.

    All is reckoned in UTC, whatever zone a connection gives its times in: Python compares and adds within a zone by the
    wall clock.
    """

    cron: str
    every: timedelta | None
    timezone: str
    start_at: datetime | None = None
    end_at: datetime | None = None

    @classmethod
    def of(cls, schedule: Schedule) -> Timetable:
        return cls(
            cron=schedule.cron,
            every=schedule.every,
            timezone=schedule.timezone,
            start_at=schedule.start_at and schedule.start_at.astimezone(UTC),
            end_at=schedule.end_at and schedule.end_at.astimezone(UTC),
        )

    def after(self, instant: datetime, count: int = 1) -> list[datetime]:
        """The next ``count`` slots later than ``instant``; fewer where they end."""
        base = instant.astimezone(UTC)
        if self.start_at is not None:
            base = max(base, self.start_at - MOMENT)
        slots = _slots(self.cron, self.every, self.timezone, base, count)
        return [slot for slot in slots if self.end_at is None or slot <= self.end_at]

    def first_after(self, instant: datetime) -> datetime | None:
        return next(iter(self.after(instant)), None)

    def last(self, count: int, first: datetime, now: datetime) -> list[datetime]:
        """The last ``count`` slots from ``first`` to ``now``, both included. Looked for from the end."""
        window = FIRST_WINDOW
        while True:
            start = max(first - MOMENT, now - window)
            slots = list(self._between(start, now))
            if len(slots) >= count or start < first:
                return slots[-count:]
            window *= WINDOW_GROWTH

    def _between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Later than ``start``, up to ``end``. Asked for in growing portions, because a rare slot is dear to find."""
        portion = 1
        while slots := self.after(start, portion):
            yield from (slot for slot in slots if slot <= end)
            if slots[-1] > end:
                return
            start, portion = slots[-1], portion * 2


@lru_cache(maxsize=4096)
def _slots(cron: str, every: timedelta | None, timezone: str, after: datetime, count: int) -> tuple[datetime, ...]:
    """Many schedules share an expression and a minute."""
    if every is not None:
        return tuple(cron_rules.next_interval_slots(every, after, count))
    return tuple(cron_rules.next_slots(cron, timezone, after, count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """``fire``: oldest first. ``missed``: the first slot that is not fired any more, nor are those that follow it up
    to the next one in ``fire`` or ``next``. ``next``: None when the schedule is over.
    """

    fire: tuple[datetime, ...]
    missed: datetime | None
    next: datetime | None


def due_slots(schedule: Schedule, now: datetime) -> Due:
    """What to do at ``now`` about a schedule whose ``next_run_at`` has come, by its catch-up policy."""
    assert schedule.next_run_at is not None  # noqa: S101
    first, now, timetable = schedule.next_run_at.astimezone(UTC), now.astimezone(UTC), Timetable.of(schedule)
    following = timetable.first_after(first)
    passed = [first]
    if following is not None and following <= now:
        count = schedule.catch_up_limit if schedule.catch_up == CatchUp.ALL else 1
        passed = timetable.last(count, first, now)
        following = timetable.first_after(now)
    fire = tuple(slot for slot in passed if now - slot <= _oldest(schedule))
    return Due(fire=fire, missed=None if first in fire else first, next=following)


def _oldest(schedule: Schedule) -> timedelta:
    age = timedelta.max if schedule.catch_up_age is None else schedule.catch_up_age
    return min(age, SKIP_GRACE) if schedule.catch_up == CatchUp.SKIP else age


def jitter_of(schedule: str, slot: datetime, jitter: timedelta) -> timedelta:
    """How much later than its slot the job runs: the same whoever computes it, evenly spread."""
    if not jitter:
        return jitter
    digest = sha256(f"{schedule} {slot.astimezone(UTC).isoformat()}".encode()).digest()
    return jitter * (int.from_bytes(digest[:6]) / 2**48)
