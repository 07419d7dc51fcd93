"""What a time zone makes of a wall-clock time: one instant, two, or none.

Everything is derived from the zone's own offsets, so a change may be of any length, in either direction and at
any hour. At most one change falls into one day, as everywhere since 1970.
"""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from django_jobs.exceptions import InvalidSchedule

_SECOND = timedelta(seconds=1)
_NO_KEYS = frozenset({"Factory", "localtime", "posixrules"})  # each machine has its own, or none


def validate_timezone(name: str) -> str:
    """``name``, if it is exactly an IANA key. Raises InvalidSchedule, naming the nearest key."""
    keys = _keys(zoneinfo.TZPATH)
    if isinstance(name, str) and name in keys:
        return name
    told = {"name": _shown(name), "hint": _nearest(name, keys)}
    raise InvalidSchedule(_("%(name)s is not an IANA time zone. %(hint)s") % told)


def read_zone(name: str) -> ZoneInfo:
    """Raises InvalidSchedule."""
    return ZoneInfo(validate_timezone(name))


@lru_cache(maxsize=4)
def _keys(path: tuple[str, ...]) -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones()) - _NO_KEYS


def _shown(name: object) -> str:
    shown = ascii(name)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _nearest(name: object, keys: frozenset[str]) -> str:
    hint = _("Write a key such as Europe/Paris or UTC.")
    if not isinstance(name, str) or len(name) > 60:
        return hint
    wanted = name.strip().replace(" ", "_").casefold()
    by_city = {key.rpartition("/")[2].casefold(): key for key in sorted(keys, reverse=True)}
    by_key = {key.casefold(): key for key in keys}
    known = by_city | by_key
    near = get_close_matches(wanted, known, n=1, cutoff=0.7)
    return _("Did you mean %r?") % known[near[0]] if near else hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The clocks change: ``at`` is the first instant with the new offset."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def shift(self) -> timedelta:
        """Above zero when clocks go forward."""
        return self.after - self.before

    @property
    def forward(self) -> bool:
        return self.shift > timedelta(0)

    @property
    def wall_before(self) -> datetime:
        """What the clocks would have shown, naive."""
        return self.at.replace(tzinfo=None) + self.before

    @property
    def wall_after(self) -> datetime:
        """What they show instead, naive."""
        return self.at.replace(tzinfo=None) + self.after

    @property
    def last_wall(self) -> datetime:
        """The last wall-clock time, naive, that this change leaves out or repeats."""
        return max(self.wall_before, self.wall_after) - timedelta.resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The instants in UTC at which the clocks show a time, and the change if it is not exactly one."""

    instants: tuple[datetime, ...]
    change: Change | None

    @property
    def reached(self) -> datetime:
        """The first instant at which the clocks show the time, or have passed over it."""
        return self.change.at if self.change and not self.instants else self.instants[0]


def wall_at(zone: ZoneInfo, instant: datetime) -> datetime:
    """What the clocks show, naive."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def read_wall(zone: ZoneInfo, wall: datetime) -> Reading:
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return Reading(instants=(first,), change=None)
    shown = tuple(instant for instant in (first, second) if wall_at(zone, instant) == wall)
    return Reading(instants=shown, change=change_between(zone, min(first, second), max(first, second)))


def change_between(zone: ZoneInfo, low: datetime, high: datetime) -> Change | None:
    """The change in (low, high], which are in UTC and a day apart at most."""
    low = low.replace(microsecond=0)
    before, after = _offset(zone, low), _offset(zone, high)
    if before == after:
        return None
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return Change(at=low + _SECOND, before=before, after=after)


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return wall_at(zone, instant) - instant.replace(tzinfo=None)
