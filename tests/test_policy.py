"""A job type's policy: wrong values are refused at import, and delays never raise."""

from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest

from django_jobs.exceptions import ConfigurationError
from django_jobs.payload import Signature
from django_jobs.policy import JobType
from django_jobs.retry import RetryPolicy
from django_jobs.worker.running import RunningJob

SECOND = timedelta(seconds=1)


def handler(user_id: int = 0): ...


async def async_handler(user_id: int = 0): ...


def job_type(name="send", handler=handler, **policy):
    return JobType(name=name, handler=handler, signature=Signature.of(handler, run_type=RunningJob), **policy)


FAULTS = [
    ({"name": ""}, "'' is no job type name: give 1 to 200 printable characters"),
    ({"name": "a" * 201}, "is no job type name"),
    ({"name": "a\n"}, "is no job type name"),
    ({"aliases": ("",)}, "is no job type name"),
    ({"aliases": (5,)}, "5 is no job type name"),
    ({"priority": 32768}, "'send': priority must be a whole number from -32768 to 32767, not 32768"),
    ({"priority": 5.0}, "priority must be a whole number"),
    ({"priority": True}, "priority must be a whole number"),
    ({"priority": "5"}, "priority must be a whole number"),
    ({"max_attempts": 0}, "max_attempts must be a whole number from 1 to 32000, not 0"),
    ({"max_attempts": 32001}, "max_attempts"),
    ({"max_attempts": "5"}, "max_attempts"),
    ({"timeout": timedelta(0)}, "timeout must be seconds or a timedelta above zero"),
    ({"timeout": 30}, "timeout must be"),
    ({"queue": 5}, "queue must be the name of a declared queue, not 5"),
    ({"retry": 5}, r"retry must be a RetryPolicy or a function of \(attempt, error\), not 5"),
    ({"on_lost": "restart"}, "on_lost is 'retry' or 'bury', not 'restart'"),
    ({"atomic": True, "handler": async_handler}, "atomic=True needs a plain def.*Make the handler a def"),
]


@pytest.mark.parametrize(("policy", "reason"), FAULTS, ids=[f"{n} {min(row[0])}" for n, row in enumerate(FAULTS)])
def test_a_wrong_policy_is_refused_with_advice(policy, reason):
    with pytest.raises(ConfigurationError, match=reason):
        job_type(**policy)


def test_a_type_is_frozen():
    with pytest.raises(FrozenInstanceError):
        job_type().priority = 5


def test_the_time_limit_is_the_types_or_the_settings(settings):
    assert job_type().time_limit is None
    settings.DJANGO_JOBS = {"TIMEOUT": 60}
    assert job_type().time_limit == timedelta(minutes=1)
    assert job_type(timeout=SECOND).time_limit == SECOND


def test_an_async_handler_is_known_as_one():
    assert job_type(handler=async_handler).is_async
    assert not job_type().is_async


def test_the_delay_follows_the_types_policy_or_the_settings(settings):
    settings.DJANGO_JOBS = {"RETRY": {"base": 10, "floor": 10, "cap": 10}}
    assert job_type().delay_after(1, ValueError()) == 10 * SECOND
    assert job_type(retry=RetryPolicy(base=SECOND, floor=SECOND, cap=SECOND)).delay_after(1, ValueError()) == SECOND


def test_a_function_decides_by_attempt_and_error():
    delay = job_type(
        retry=lambda attempt, error: attempt * (2 if isinstance(error, KeyError) else 1) * SECOND
    ).delay_after
    assert delay(3, KeyError()) == 6 * SECOND
    assert delay(3, ValueError()) == 3 * SECOND


BAD_FUNCTIONS = {
    "raises": lambda attempt, error: 1 / 0,
    "a number": lambda attempt, error: 5,
    "nothing": lambda attempt, error: None,
    "negative": lambda attempt, error: -SECOND,
    "years": lambda attempt, error: timedelta(days=367),
    "other arguments": lambda attempt: SECOND,
}


@pytest.mark.parametrize("name", BAD_FUNCTIONS)
def test_a_function_that_fails_is_logged_and_the_default_is_taken(settings, caplog, name):
    settings.DJANGO_JOBS = {"RETRY": {"base": 10, "floor": 10, "cap": 10}}
    assert job_type(retry=BAD_FUNCTIONS[name]).delay_after(1, ValueError()) == 10 * SECOND
    assert "retry function of job type 'send'" in caplog.text
    assert "the default" in caplog.text


class TooManyRequests(Exception):
    retry_after = 30


def test_what_the_other_side_asked_for_is_a_lower_bound():
    quick = RetryPolicy(base=SECOND, floor=SECOND, cap=SECOND)
    slow = RetryPolicy(base=90 * SECOND, floor=90 * SECOND, cap=90 * SECOND)
    assert job_type(retry=quick).delay_after(1, TooManyRequests()) == 30 * SECOND
    assert job_type(retry=slow).delay_after(1, TooManyRequests()) == 90 * SECOND
    assert job_type(retry=lambda attempt, error: SECOND).delay_after(1, TooManyRequests()) == 30 * SECOND


@pytest.mark.parametrize("attempt", [0, -5, 10**6])
def test_any_attempt_number_has_a_delay(attempt):
    assert timedelta(0) < job_type().delay_after(attempt, ValueError()) <= timedelta(hours=1)
