"""Which wall-clock times of a schedule run, and at which instants.

*Fixed-time* schedules, whose minute and hour do not begin with ``*``, mean a time of the day: each runs once. A time
that the clocks leave out runs at the first instant after the gap, unless the gap is longer than three hours; a
time that comes twice runs the first time.

*Wildcard* schedules mean the running clock: each real minute whose wall-clock time matches is a slot. What the
clocks leave out is not caught up, what comes twice runs twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django_jobs.cron.expression import Expression, read_expression
from django_jobs.cron.zones import Reading, change_between, read_wall, read_zone, wall_at

LONGEST_GAP = timedelta(hours=3)

_DAY = timedelta(days=1)
_TICK = timedelta.resolution


def next_slots(expression: str, zone: str, after: datetime, count: int) -> list[datetime]:
    """The next ``count`` slots, in UTC and in order, each strictly later than ``after``, which is aware.

    ``zone``: an IANA key. Raises InvalidSchedule, and ValueError if ``after`` is naive.
    """
    if after.tzinfo is None:
        raise ValueError("after must be aware: a naive time names no instant.")
    checked, place, slots = read_expression(expression), read_zone(zone), [after.astimezone(UTC)]
    for _ in range(count):
        slots.append(next_slot(checked, place, slots[-1]))
    return slots[1:]


def next_slot(expression: Expression, zone: ZoneInfo, after: datetime) -> datetime:
    if expression.is_wildcard:
        return _next_wildcard(expression, zone, after)
    return _next_fixed_time(expression, zone, after)


def _next_fixed_time(expression: Expression, zone: ZoneInfo, after: datetime) -> datetime:
    wall = wall_at(zone, after)
    while True:
        wall = expression.propose(wall)
        reading = read_wall(zone, wall)
        slot = _single_run(reading)
        if slot is not None and slot > after:
            return slot
        wall = reading.change.last_wall if reading.change else wall


def _single_run(reading: Reading) -> datetime | None:
    left_out = reading.change is not None and reading.change.shift > LONGEST_GAP
    return None if left_out else reading.reached


def _next_wildcard(expression: Expression, zone: ZoneInfo, after: datetime) -> datetime:
    """Wall-clock times come in the order of instants, except that clocks which go back show some again.

    Only a change of the next day can show again what they showed before ``after``.
    """
    slot = _first_match(expression, zone, wall_at(zone, after), after)
    change = change_between(zone, after, min(slot, after + _DAY))
    if change is None or change.forward:
        return slot
    return _first_match(expression, zone, change.wall_after - _TICK, change.at - _TICK)


def _first_match(expression: Expression, zone: ZoneInfo, wall: datetime, after: datetime) -> datetime:
    while True:
        wall = expression.propose(wall)
        reading = read_wall(zone, wall)
        for instant in reading.instants:
            if instant > after:
                return instant
        if reading.change and reading.change.forward:
            wall = reading.change.last_wall
