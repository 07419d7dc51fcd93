"""The rules of daylight saving, for every zone and around every change of its clock."""

import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone as django_timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from django_jobs import cron
from tests.cron.calls import calls_of
from tests.cron.clocks import (
    DAY,
    HOUR,
    MINUTE,
    changes,
    fixed_time_slots,
    minutes,
    offset,
    shown,
    wildcard_slots,
    zones,
)
from tests.cron.expressions import expressions
from tests.cron.test_proposals import MOST_CALLS, validated

TICK = timedelta.resolution
YEAR = 2026

WILDCARDS = {
    "*/30 * * * *": lambda wall: wall.minute % 30 == 0,
    "45 * * * *": lambda wall: wall.minute == 45,
    "*/20 1 * * *": lambda wall: wall.hour == 1 and wall.minute % 20 == 0,
    "10,50 */2 * * *": lambda wall: wall.hour % 2 == 0 and wall.minute in (10, 50),
}
FIXED_TIMES = {
    "30 2 * * *": lambda wall: (wall.hour, wall.minute) == (2, 30),
    "0,45 0-3 * * *": lambda wall: wall.hour < 4 and wall.minute in (0, 45),
    "15 0-23/2 * * *": lambda wall: wall.hour % 2 == 0 and wall.minute == 15,
    "30 23 * * *": lambda wall: (wall.hour, wall.minute) == (23, 30),
}


def slots_until(expression, zone, after, until):
    slots = []
    while not slots or slots[-1] < until:
        slots += cron.next_slots(expression, zone, slots[-1] if slots else after, 4)
    return [slot for slot in slots if slot < until]


@st.composite
def near_a_change(draw, years=(1973, 2060)):
    """(zone, an instant within a day of a change of its clock, if it has one in that year)"""
    zone, year = draw(st.sampled_from(zones())), draw(st.integers(*years))
    middles = changes(zone, year) or [datetime(year, 6, 1, tzinfo=UTC)]
    middle = draw(st.sampled_from(middles))
    return zone, middle + draw(st.timedeltas(-DAY, DAY))


def all_changes(year):
    return [(zone, change) for zone in zones() for change in changes(zone, year)]


# Every change of one year, in every zone


@pytest.mark.parametrize("expression", WILDCARDS)
def test_a_wildcard_schedule_matches_the_local_clock_of_each_real_minute(expression):
    for zone, change in all_changes(YEAR):
        after, until = change - 2 * HOUR, change + 2 * HOUR
        expected = wildcard_slots(zone, WILDCARDS[expression], after, until)
        assert slots_until(expression, zone, after, until) == expected, (zone, change)


@pytest.mark.parametrize("expression", FIXED_TIMES)
def test_a_fixed_time_runs_once_at_the_first_instant_that_has_reached_it(expression):
    for zone, change in all_changes(YEAR):
        after, until = change - 2 * HOUR, change + 2 * HOUR
        expected = fixed_time_slots(zone, FIXED_TIMES[expression], after, until, longest_overlap=3 * HOUR)
        assert slots_until(expression, zone, after, until) == expected, (zone, change)


def test_every_minute_is_sixty_seconds_apart_through_every_change():
    for zone, change in all_changes(YEAR):
        lengths = abs(offset(zone, change) - offset(zone, change - MINUTE))
        for instant in (change - lengths, change, change + lengths):
            first = instant - 2 * MINUTE
            assert cron.next_slots("* * * * *", zone, first - TICK, 4) == list(minutes(first, first + 4 * MINUTE))


def whole_hours(zone, year):
    middles = [datetime(year, 1, 1, tzinfo=UTC), *changes(zone, year)]
    return all(offset(zone, middle) % HOUR == timedelta(0) for middle in middles)


def test_every_hour_is_an_hour_apart_through_every_change_of_whole_hours():
    for zone, change in all_changes(YEAR):
        if whole_hours(zone, YEAR):
            slots = cron.next_slots("0 * * * *", zone, change - 3 * HOUR - TICK, 6)
            assert slots == [change + number * HOUR for number in range(-3, 3)]


# Any zone and any time


@given(near=near_a_change(), expression=st.sampled_from([*WILDCARDS, *FIXED_TIMES]), length=st.integers(1, 300))
@settings(max_examples=100, deadline=None)
def test_slots_are_those_found_minute_by_minute(near, expression, length):
    zone, after = near
    until = after + length * MINUTE
    if expression in WILDCARDS:
        expected = wildcard_slots(zone, WILDCARDS[expression], after, until)
    else:
        expected = fixed_time_slots(zone, FIXED_TIMES[expression], after, until)
    assert slots_until(expression, zone, after, until) == expected


@given(near=near_a_change(years=(1900, 2100)), drawn=expressions())
@settings(max_examples=100, deadline=None)
def test_a_slot_is_later_than_its_base_and_stays_the_next_until_it_comes(near, drawn):
    if validated(drawn):
        zone, after = near
        [slot] = cron.next_slots(drawn.text, zone, after, 1)
        assert slot > after
        assert cron.next_slots(drawn.text, zone, slot - TICK, 1) == [slot]
        assert cron.next_slots(drawn.text, zone, after + (slot - after) / 2, 1) == [slot]


@given(near=near_a_change(), drawn=expressions(), later=st.timedeltas(TICK, 3 * DAY))
@settings(max_examples=100, deadline=None)
def test_a_later_base_has_no_earlier_slot(near, drawn, later):
    if validated(drawn):
        zone, after = near
        assert cron.next_slots(drawn.text, zone, after, 1) <= cron.next_slots(drawn.text, zone, after + later, 1)


@given(near=near_a_change(years=(1973, 2100)))
@settings(max_examples=100, deadline=None)
def test_every_minute_is_the_minute_after_the_base(near):
    zone, after = near
    following = after.replace(second=0, microsecond=0) + MINUTE
    assert cron.next_slots("* * * * *", zone, after, 1) == [following]


def reached_days(zone, slots, hour, minute):
    """The local day that each slot is for: a slot in a gap is for the day on which the gap begins."""
    for slot in slots:
        wall = shown(zone, slot)
        on_time = (wall.hour, wall.minute) == (hour, minute)
        yield (wall if on_time else shown(zone, slot - MINUTE) + MINUTE).date()


@given(near=near_a_change(years=(2001, 2060)), hour=st.integers(0, 23), minute=st.integers(0, 59))
@settings(max_examples=100, deadline=None)
def test_a_daily_time_runs_once_on_each_local_day_that_exists(near, hour, minute):
    zone, after = near
    slots = cron.next_slots(f"{minute} {hour} * * *", zone, after - 2 * DAY, 5)
    hours = [slots[0] + number * HOUR for number in range((slots[-1] - slots[0]) // HOUR + 1)]
    existing = {shown(zone, instant).date() for instant in [*hours, slots[-1]]}
    days = list(reached_days(zone, slots, hour, minute))
    assert days == sorted(existing.intersection(days))
    assert existing - set(days) <= {shown(zone, slots[-1]).date(), shown(zone, slots[0]).date()}


# What it must not depend on


@pytest.mark.parametrize("process_zone", ["Europe/London", "UTC", "Asia/Kolkata", "Australia/Lord_Howe"])
def test_the_zone_of_the_process_and_of_django_do_not_matter(process_zone, monkeypatch):
    autumn = datetime(2026, 10, 24, 22, tzinfo=UTC)
    expected = [autumn + timedelta(hours=hours) for hours in (3.5, 27.5, 51.5)]
    monkeypatch.setenv("TZ", process_zone)
    time.tzset()
    try:
        with django_timezone.override(ZoneInfo(process_zone)):
            assert cron.next_slots("30 1 * * *", "UTC", autumn, 3) == expected
            london = cron.next_slots("30 1 * * *", "Europe/London", autumn, 3)
            assert london == [expected[0] - HOUR, *expected[1:]]
    finally:
        monkeypatch.undo()
        time.tzset()


@given(near=near_a_change(), hours=st.integers(-23, 23), other=st.sampled_from(zones()))
@settings(max_examples=100, deadline=None)
def test_it_does_not_matter_how_the_base_is_written(near, hours, other):
    zone, after = near
    bases = [after, after.astimezone(timezone(hours * HOUR)), after.astimezone(ZoneInfo(other))]
    for expression in ("*/20 * * * *", "30 2 * * *"):
        assert len({tuple(cron.next_slots(expression, zone, base, 2)) for base in bases}) == 1


def test_a_naive_base_is_refused():
    with pytest.raises(ValueError, match="after must be aware"):
        cron.next_slots("* * * * *", "UTC", datetime(2026, 1, 1), 1)


def test_slots_are_aware_and_in_utc():
    [slot] = cron.next_slots("0 8 * * *", "Asia/Kolkata", datetime(2026, 1, 1, tzinfo=UTC), 1)
    assert slot.tzinfo is UTC


# Gaps of more than three hours


def test_in_a_gap_of_more_than_three_hours_slots_do_not_exist():
    before = datetime(1994, 10, 31, 20, tzinfo=UTC)
    slots = cron.next_slots("0 5 * * *", "Antarctica/Vostok", before, 2)
    assert [shown("Antarctica/Vostok", slot) for slot in slots] == [datetime(1994, 11, 2, 5), datetime(1994, 11, 3, 5)]


def test_a_day_that_a_zone_left_out_costs_few_steps():
    before = datetime(2011, 12, 30, 9, 59, tzinfo=UTC)
    for expression in ("* * * * *", "0-58 0-22 * * *", "* * 31 12 *"):
        cron.validate(expression)
        assert calls_of(lambda text=expression: cron.next_slots(text, "Pacific/Apia", before, 1)) < MOST_CALLS
    assert cron.next_slots("0-58 0-22 * * *", "Pacific/Apia", before, 1) == [datetime(2011, 12, 30, 10, tzinfo=UTC)]


def test_a_slot_at_the_very_change_is_found_from_a_base_between_seconds():
    change = datetime(2026, 10, 25, 1, tzinfo=UTC)
    after = change - 15 * MINUTE + timedelta(microseconds=500_000)
    assert cron.next_slots("0 * * * *", "Europe/London", after, 1) == [change]
