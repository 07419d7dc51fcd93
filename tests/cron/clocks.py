"""What clocks show, found minute by minute: slow and simple, to compare with."""

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@cache
def zones():
    """One key for each content of the zone files."""
    data = resources.files("tzdata").joinpath("zoneinfo")
    keys = resources.files("tzdata").joinpath("zones").read_text().split()
    by_content = {data.joinpath(*key.split("/")).read_bytes(): key for key in sorted(keys) if key != "Factory"}
    return sorted(by_content.values())


def shown(zone, instant):
    return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def offset(zone, instant):
    return instant.astimezone(ZoneInfo(zone)).utcoffset()


@cache
def changes(zone, year):
    """The first instants with a new offset, in that year."""
    days = [datetime(year, 1, 1, tzinfo=UTC) + number * DAY for number in range(367)]
    return [change_after(zone, day) for day in days[:-1] if offset(zone, day) != offset(zone, day + DAY)]


def change_after(zone, day):
    minute = day
    while offset(zone, minute + HOUR) == offset(zone, day):
        minute += HOUR
    while offset(zone, minute) == offset(zone, day):
        minute += MINUTE
    return minute


def minutes(first, last):
    """The whole minutes in [first, last)."""
    minute = first.replace(second=0, microsecond=0)
    while minute < last:
        if minute >= first:
            yield minute
        minute += MINUTE


@cache
def readings(zone, first, last):
    """(minute, what the clocks show) for the whole minutes in [first, last)."""
    return [(minute, shown(zone, minute)) for minute in minutes(first, last)]


def wildcard_slots(zone, matches, after, until):
    return [minute for minute, wall in readings(zone, after + timedelta.resolution, until) if matches(wall)]


def fixed_time_slots(zone, matches, after, until, *, longest_overlap=2 * DAY):
    """Each wall-clock minute that matches, at the first instant when the clocks show it or have passed over it."""
    slots, seen, previous = set(), set(), None
    for minute, wall in readings(zone, after - longest_overlap, until):
        passed = walls_between(previous, wall) if previous else []
        if any(matches(skipped) for skipped in passed) or (matches(wall) and wall not in seen):
            slots.add(minute)
        seen.update([wall, *passed])
        previous = wall
    return sorted(slot for slot in slots if slot > after)


def walls_between(previous, wall):
    """The minutes that the clocks left out, unless they are more than three hours."""
    if not timedelta(0) < wall - previous - MINUTE <= 3 * HOUR:
        return []
    return [previous + number * MINUTE for number in range(1, (wall - previous) // MINUTE)]
