"""Slots and what becomes of those that passed: pure, so time is whatever the test says."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobs.models import Schedule
from django_jobs.operations.timetable import Timetable, due_slots, jitter_of

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def schedule(*, first, every=None, cron="", zone="UTC", **fields):
    fields = {"catch_up": "latest", "catch_up_limit": 100} | fields
    return Schedule(pk="s", cron=cron, every=every, timezone=zone, next_run_at=first, **fields)


def minutes(due):
    return [(slot - NOON) / MINUTE for slot in due.fire]


def test_on_time_the_slot_fires_and_the_next_one_follows():
    due = due_slots(schedule(first=NOON, every=MINUTE), NOON + timedelta(milliseconds=3))
    assert (due.fire, due.missed, due.next) == ((NOON,), None, NOON + MINUTE)


@pytest.mark.parametrize(
    ("policy", "fired"),
    [
        ({"catch_up": "skip"}, 0),
        ({"catch_up": "latest"}, 1),
        ({"catch_up": "all", "catch_up_limit": 10}, 10),
        ({"catch_up": "all", "catch_up_limit": 1000}, 864),
        ({"catch_up": "all", "catch_up_limit": 1000, "catch_up_age": timedelta(hours=1)}, 12),
        ({"catch_up": "latest", "catch_up_age": timedelta(minutes=2)}, 0),
    ],
    ids=str,
)
def test_three_days_without_schedulers_cost_what_the_policy_says(policy, fired):
    now = NOON + timedelta(days=3) - timedelta(minutes=2, seconds=1)
    due = due_slots(schedule(first=NOON, cron="*/5 * * * *", **policy), now)
    assert len(due.fire) == fired
    assert due.next == NOON + timedelta(days=3)
    assert (due.missed is None) is (fired == 864)
    assert list(due.fire) == [now + timedelta(seconds=1) - 3 * MINUTE - 5 * MINUTE * n for n in reversed(range(fired))]


@given(
    every=st.integers(1, 100_000).map(lambda seconds: timedelta(seconds=seconds)),
    slots=st.integers(0, 300),
    late=st.floats(0, 0.999),
    count=st.integers(1, 50),
)
def test_the_last_slots_are_those_that_counting_from_the_first_finds(every, slots, late, count):
    timetable = Timetable(cron="", every=every, timezone="UTC")
    first = timetable.first_after(NOON)
    now = first + every * (slots + late)
    found = timetable.last(count, first, now)
    assert found == [first + every * number for number in range(slots + 1)][-count:]


def test_years_of_a_schedule_of_each_second_are_not_counted_through():
    due = due_slots(schedule(first=NOON, every=timedelta(seconds=1)), NOON + timedelta(days=3650))
    assert due.fire == (NOON + timedelta(days=3650),)


def test_a_rare_schedule_is_found_far_back():
    first = datetime(2020, 2, 29, tzinfo=UTC)
    due = due_slots(schedule(first=first, cron="0 0 29 2 *"), NOON)
    assert due.fire == (datetime(2024, 2, 29, tzinfo=UTC),)
    assert due.next == datetime(2028, 2, 29, tzinfo=UTC)


def test_start_and_end_are_included():
    timetable = Timetable(cron="", every=MINUTE, timezone="UTC", start_at=NOON, end_at=NOON + 2 * MINUTE)
    slots = timetable.after(NOON - timedelta(days=1), 10)
    assert slots == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    assert timetable.first_after(NOON + 2 * MINUTE) is None


@pytest.mark.parametrize(
    ("cron", "first", "now", "fired"),
    [
        ("30 1 * * *", "2026-11-01T05:30Z", "2026-11-01T06:31Z", ["2026-11-01T05:30"]),
        ("30 2 * * *", "2026-03-08T07:00Z", "2026-03-08T09:00Z", ["2026-03-08T07:00"]),
        (
            "*/30 * * * *",
            "2026-11-01T05:00Z",
            "2026-11-01T07:00Z",
            [f"2026-11-01T0{h}" for h in ("5:00", "5:30", "6:00", "6:30", "7:00")],
        ),
    ],
    ids=["repeated hour", "left out hour", "wildcard in the repeated hour"],
)
def test_a_change_of_the_clocks_between_slot_and_firing_neither_adds_nor_loses_one(cron, first, now, fired):
    due = due_slots(
        schedule(first=datetime.fromisoformat(first), cron=cron, zone="America/New_York", catch_up="all"),
        datetime.fromisoformat(now),
    )
    assert [slot.strftime("%Y-%m-%dT%H:%M") for slot in due.fire] == fired


@pytest.mark.parametrize("policy", [{"catch_up": "all"}, {"catch_up": "latest"}, {"catch_up": "skip"}], ids=str)
def test_the_zone_in_which_the_database_gives_its_times_decides_nothing(policy):
    """Around 06:00 UTC New York's wall clock shows an hour for the second time."""
    local = ZoneInfo("America/New_York")
    change = datetime(2026, 11, 1, 6, tzinfo=UTC)
    quarter = timedelta(minutes=15)
    for early, late in product(range(-5, 5), range(10)):
        first = change + early * quarter
        now = first + late * quarter + MINUTE
        bounds = {"start_at": change - 3 * quarter, "end_at": change + 6 * quarter}
        expected = due_slots(schedule(first=first, every=quarter, **bounds, **policy), now)
        given = {name: bound.astimezone(local) for name, bound in bounds.items()}
        row = schedule(first=first.astimezone(local), every=quarter, **given, **policy)
        assert due_slots(row, now.astimezone(local)) == expected, (first, now)


# Jitter


def test_jitter_is_the_same_whoever_computes_it():
    once, again = (jitter_of("digest", NOON, MINUTE) for _ in range(2))
    other_zone = jitter_of("digest", NOON.astimezone(tz=None), MINUTE)
    assert once == again == other_zone
    assert jitter_of("digest", NOON, timedelta(0)) == timedelta(0)


def test_jitter_spreads_slots_evenly():
    tenths = Counter(jitter_of(f"s{n}", NOON, timedelta(minutes=10)) // MINUTE for n in range(10_000))
    assert sorted(tenths) == list(range(10))
    assert all(850 < count < 1150 for count in tenths.values())


KINDS = [
    ("30 1 * * *", None),
    ("45 1 * * *", None),
    ("*/7 * * * *", None),
    ("0 * * * *", None),
    ("15,45 0-3 * * *", None),
    ("* 1 * * *", None),
    ("0 2 1 11 *", None),
    ("", timedelta(seconds=90)),
    ("", timedelta(hours=1)),
]


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "UTC"])
@pytest.mark.parametrize("start", ["2026-11-01T05:30Z", "2026-03-08T06:30Z", "2026-04-04T14:00Z", "2026-10-03T14:00Z"])
def test_through_the_hour_that_comes_twice_or_never_each_slot_fires_once_whenever_one_looks(zone, start):
    """Looks at uneven times, as a scheduler's are; ``all`` so that a late look leaves nothing out."""
    begin = datetime.fromisoformat(start)
    end = begin + timedelta(hours=3)
    for cron, every in KINDS:
        timetable = Timetable(cron=cron, every=every, timezone=zone)
        expected = [slot for slot in timetable.after(begin, 400) if slot <= end]
        row = schedule(first=timetable.first_after(begin), cron=cron, every=every, zone=zone, catch_up="all")
        fired, now = [], begin
        while now < end:
            now = min(now + timedelta(seconds=47 + len(fired) * 13 % 200), end)
            while row.next_run_at is not None and row.next_run_at <= now:
                due = due_slots(row, now)
                fired += due.fire
                row.next_run_at = due.next
        assert fired == expected, (cron, every)
