from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobs import clock
from django_jobs.exceptions import ConfigurationError
from django_jobs.retry import RetryPolicy, retry_after

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Refused(Exception):
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def answered(header, name="Retry-After"):
    return Refused(response=SimpleNamespace(headers={name: header}))


@pytest.mark.parametrize("base", [timedelta(microseconds=1), 2 * SECOND, timedelta(hours=1)])
def test_ten_thousand_attempts_stay_between_floor_and_cap(base):
    policy = RetryPolicy(base=base, floor=timedelta(0))
    delays = [policy.delay(attempt) for attempt in range(1, 10_001)]
    assert min(delays) >= timedelta(0)
    assert max(delays) <= policy.cap


@given(st.integers())
def test_no_attempt_number_makes_it_raise(attempt):
    policy = RetryPolicy()
    assert policy.floor <= policy.delay(attempt) <= policy.cap


@pytest.mark.parametrize("attempt", [1, 2, 5, 11, 12, 10_000])
def test_ten_thousand_samples_fill_the_interval_evenly(attempt):
    policy = RetryPolicy()
    upper = min(policy.cap, policy.base * 2 ** (min(attempt, 40) - 1))
    seeded = Random(attempt)
    samples = sorted(policy.delay(attempt, random=seeded) / upper for _ in range(10_000))
    floor = policy.floor / upper
    assert floor <= samples[0] < floor + 0.01
    assert 0.99 < samples[-1] <= 1
    assert sum(samples) / len(samples) == pytest.approx((1 + floor) / 2, abs=0.02)


def test_a_policy_whose_floor_is_its_cap_does_not_jitter():
    policy = RetryPolicy(base=SECOND, cap=SECOND, floor=SECOND)
    assert {policy.delay(attempt) for attempt in range(1, 50)} == {SECOND}


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"base": timedelta(0)}, "base"),
        ({"base": -SECOND}, "base"),
        ({"floor": -SECOND}, "floor"),
        ({"floor": 3 * SECOND}, "floor"),
        ({"base": timedelta(hours=2)}, "cap"),
        ({"cap": timedelta(days=366)}, "cap"),
        ({"base": 2}, "base must be a timedelta"),
        ({"cap": None}, "cap must be a timedelta"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(settings, names):
    with pytest.raises(ConfigurationError, match=names):
        RetryPolicy(**settings)


def test_the_window_of_three_attempts_is_two_pauses():
    window = RetryPolicy(base=2 * SECOND, floor=SECOND).window(3)
    assert window.shortest == 2 * SECOND
    assert window.longest == 6 * SECOND
    assert window.expected == 4 * SECOND


def test_the_default_window_of_twelve_attempts_is_about_an_hour():
    window = RetryPolicy().window(12)
    assert window.longest == timedelta(seconds=sum(2**n for n in range(1, 12)))


@pytest.mark.parametrize("max_attempts", [0, 1])
def test_a_single_attempt_has_no_window(max_attempts):
    assert RetryPolicy().window(max_attempts).longest == timedelta(0)


def test_the_window_of_too_many_attempts_is_the_longest_timedelta():
    assert RetryPolicy().window(10**30).longest == timedelta.max


def test_the_window_agrees_with_the_delays():
    policy, seeded = RetryPolicy(), Random(7)
    window = policy.window(80)
    total = sum((policy.delay(attempt, random=seeded) for attempt in range(1, 80)), timedelta(0))
    assert window.shortest <= total <= window.longest
    assert total / window.expected == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (Refused(retry_after=30), 30),
        (Refused(retry_after=1.5), 1.5),
        (Refused(retry_after=timedelta(minutes=2)), 120),
        (Refused(retry_after="7"), 7),
        (answered("120"), 120),
        (answered("120", name="retry-after"), 120),
        (answered(" 3 "), 3),
        (answered(format_datetime(NOW + timedelta(minutes=5), usegmt=True)), 300),
        (answered("Sun, 29 Nov 2026 12:05:00 -0000"), 300),
    ],
)
def test_the_pause_the_other_side_asks_for_is_read(error, pause, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: NOW)
    assert retry_after(error) == timedelta(seconds=pause)


@pytest.mark.parametrize(
    "stated",
    [
        0,
        -5,
        True,
        float("nan"),
        float("inf"),
        1e300,
        10**400,
        timedelta(days=8),
        "NaN",
        "soon",
        "9" * 65,
        b"5",
        [],
        "",
    ],
)
def test_a_malformed_negative_or_absurd_pause_is_ignored(stated):
    assert retry_after(Refused(retry_after=stated)) is None
    assert retry_after(answered(stated)) is None


@pytest.mark.parametrize(
    "header", ["Sun, 29 Nov 1970 12:00:00 GMT", "Sun, 99 Nov 2026", "Fri, 31 Dec 9999 23:59:59 GMT"]
)
def test_a_date_in_the_past_or_far_ahead_is_ignored(header):
    assert retry_after(answered(header)) is None


def test_an_error_without_a_pause_has_none():
    assert retry_after(ValueError("no")) is None
    assert retry_after(Refused(response=None)) is None
    assert retry_after(Refused(response=SimpleNamespace(headers=object()))) is None


def test_an_error_whose_attributes_raise_has_none():
    class Hostile(Exception):
        @property
        def retry_after(self):
            raise RuntimeError

    assert retry_after(Hostile()) is None


@given(st.text() | st.floats() | st.integers() | st.binary())
def test_no_stated_pause_makes_it_raise(stated):
    pause = retry_after(answered(stated))
    assert pause is None or timedelta(0) < pause <= timedelta(days=7)
