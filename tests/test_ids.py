import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobs import clock, ids
from django_jobs.ids import uuid7, uuid7_at, uuid7_range
from tests.uuid7 import instant_of

MILLISECONDS = st.integers(min_value=0, max_value=2_000_000_000_000)
DAYS = st.dates(min_value=date(1970, 1, 1), max_value=date(9999, 12, 30))


@pytest.fixture(autouse=True)
def own_sequence(monkeypatch):
    """A test's far future must not lift the ids of the tests after it."""
    monkeypatch.setattr(ids, "_last", 0)


def test_an_id_is_a_uuid_of_version_7():
    assert uuid7().version == 7
    assert uuid7().variant == uuid4().variant


def test_an_id_carries_the_millisecond_it_was_made_at():
    assert instant_of(uuid7(1_700_000_000_123)) == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)


def test_an_id_without_a_millisecond_is_of_now():
    assert abs(instant_of(uuid7()) - clock.now()) < timedelta(seconds=1)


@given(st.lists(MILLISECONDS, min_size=2, max_size=50))
def test_ids_increase_whatever_the_clock_does(milliseconds):
    made = [uuid7(value) for value in milliseconds]
    assert made == sorted(set(made))


def test_ids_of_one_millisecond_increase_and_stay_in_it():
    made = [uuid7(1_000) for _ in range(10_000)]
    assert made == sorted(set(made))
    assert {value.int >> 80 for value in made} == {1_000}


def test_text_and_bytes_sort_like_the_ids():
    made = [uuid7(1_000 + step // 7) for step in range(1_000)]
    assert sorted(str(value) for value in made) == [str(value) for value in made]
    assert sorted(value.bytes for value in made) == [value.bytes for value in made]


def test_eight_threads_make_no_id_twice_and_each_sees_increasing_ones():
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: [uuid7() for _ in range(2_000)], range(8)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({value for batch in batches for value in batch}) == 16_000


def test_a_full_millisecond_carries_into_the_next_one(monkeypatch):
    monkeypatch.setattr(ids, "_last", (1_001 << 74) - 1)
    assert uuid7(1_000).int >> 80 == 1_001


@pytest.mark.parametrize("milliseconds", [-1, 1 << 48, 253_402_300_800_000])
def test_an_instant_outside_1970_to_9999_is_refused(milliseconds):
    with pytest.raises(ValueError, match="1970"):
        uuid7(milliseconds)


def test_a_forked_child_makes_other_ids_than_its_parent():
    uuid7()
    child = ids_of_a_fork(lambda: [uuid7() for _ in range(100)])
    assert not set(child) & {uuid7() for _ in range(100)}


def test_a_child_forked_while_a_thread_makes_an_id_does_not_wait_for_it():
    with ids._lock:
        assert len(ids_of_a_fork(lambda: [uuid7()])) == 1


def test_a_forked_child_stays_above_the_ids_before_the_fork():
    before = uuid7()
    assert min(ids_of_a_fork(lambda: [uuid7(0)])) > before


def ids_of_a_fork(make):
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        alarm = threading.Timer(10, os._exit, [1])
        alarm.daemon = True
        alarm.start()
        os.write(writing, b"".join(value.bytes for value in make()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(process, 0)
    return [UUID(bytes=content[start : start + 16]) for start in range(0, len(content), 16)]


@given(DAYS)
def test_the_ranges_of_two_days_meet_without_a_gap(day):
    assert uuid7_range(day)[1] == uuid7_range(day + timedelta(days=1))[0]


@given(DAYS, st.integers(0, 86_399_999))
def test_an_id_lies_in_the_range_of_its_utc_day_only(day, millisecond):
    instant = datetime.combine(day, datetime.min.time(), UTC) + timedelta(milliseconds=millisecond)
    low, high = uuid7_range(day)
    assert low <= uuid7_at(instant) < high


def test_the_last_day_of_the_calendar_has_a_range():
    low, high = uuid7_range(date(9999, 12, 31))
    assert low < high


def test_a_range_begins_at_midnight():
    assert instant_of(uuid7_range(date(2026, 11, 29))[0]) == datetime(2026, 11, 29, tzinfo=UTC)


def test_an_id_of_the_past_leaves_the_order_alone():
    first = uuid7()
    past = uuid7_at(datetime(2020, 1, 1, tzinfo=UTC))
    assert past < first < uuid7()


def test_an_id_of_a_naive_instant_is_refused():
    with pytest.raises(ValueError, match="aware"):
        uuid7_at(datetime(2020, 1, 1, tzinfo=None))  # noqa: DTZ001


def test_an_id_of_an_instant_before_1970_is_refused():
    with pytest.raises(ValueError, match="1970"):
        uuid7_at(datetime(1969, 12, 31, tzinfo=UTC))
