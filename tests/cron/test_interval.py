from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobs import cron
from django_jobs.exceptions import InvalidSchedule

SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)

INTERVALS = st.integers(1, 366 * 86_400).map(lambda seconds: timedelta(seconds=seconds))
INSTANTS = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@given(INTERVALS, INSTANTS)
def test_the_next_slot_is_the_next_multiple_since_1970(every, after):
    [slot] = cron.next_interval_slots(every, after, 1)
    assert after < slot <= after + every
    assert (slot - EPOCH) % every == timedelta(0)


@given(INTERVALS, INSTANTS)
def test_slots_do_not_drift_however_late_each_is_looked_for(every, after):
    slots = cron.next_interval_slots(every, after, 4)
    assert [later - slot for slot, later in pairwise(slots)] == [every] * 3
    assert cron.next_interval_slots(every, slots[0] + every * 0.9, 3) == slots[1:]


def test_a_slot_is_strictly_later_than_a_base_on_a_slot():
    assert cron.next_interval_slots(10 * SECOND, NOON, 2) == [NOON + 10 * SECOND, NOON + 20 * SECOND]
    assert cron.next_interval_slots(10 * SECOND, NOON - timedelta.resolution, 1) == [NOON]


def test_it_does_not_matter_how_the_base_is_written():
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert cron.next_interval_slots(7 * SECOND, elsewhere, 3) == cron.next_interval_slots(7 * SECOND, NOON, 3)


def test_a_naive_base_is_refused():
    with pytest.raises(ValueError, match="after must be aware"):
        cron.next_interval_slots(SECOND, datetime(2026, 1, 1), 1)


@pytest.mark.parametrize("every", [SECOND, timedelta(days=366)])
def test_the_shortest_and_the_longest_interval_are_accepted(every):
    assert cron.validate_interval(every) == every


@pytest.mark.parametrize(
    ("every", "reason"),
    [
        (timedelta(milliseconds=999), "between 1 second and 366 days"),
        (timedelta(0), "between 1 second and 366 days"),
        (-SECOND, "between 1 second and 366 days"),
        (timedelta(days=366, seconds=1), "between 1 second and 366 days"),
        (timedelta(seconds=1.5), "whole seconds"),
        (10, "write every=timedelta"),
        (None, "write every=timedelta"),
    ],
)
def test_any_other_interval_is_refused(every, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        cron.validate_interval(every)
    with pytest.raises(InvalidSchedule, match=reason):
        cron.next_interval_slots(every, NOON, 1)
