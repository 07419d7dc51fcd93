"""``manage.py jobtypes``: what is registered, and for how long each type is retried."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_jobs import RetryPolicy, job
from django_jobs.registry import registry

PATIENT = RetryPolicy(base=timedelta(hours=1))


@pytest.fixture(autouse=True)
def no_other_types(monkeypatch):
    monkeypatch.setattr(registry, "_by_name", {})


def printed():
    out = StringIO()
    call_command("jobtypes", stdout=out)
    return [line.split("  ") for line in out.getvalue().splitlines()]


def lines():
    return [[cell.strip() for cell in line if cell.strip()] for line in printed()]


def test_each_type_is_shown_with_its_policy_and_the_time_it_is_retried_for():
    job("slow", queue="bulk", priority=-5, timeout=90, max_attempts=3, on_lost="bury", retry=PATIENT)(noop)
    job("quick", aliases="former")(noop)
    assert lines() == [
        ["type", "queue", "priority", "attempts", "time-out", "if lost", "retried for", "at most"],
        ["quick", "default", "0", "12", "none", "retry", "34.1 min", "1.1 h"],
        ["slow", "bulk", "-5", "3", "1.5 min", "bury", "1 h", "2 h"],
    ]


def test_a_retry_function_cannot_be_added_up():
    job("own", retry=lambda attempt, error: timedelta(seconds=attempt))(noop)
    assert lines()[1][-1] == "as its function says"


def test_a_type_that_is_tried_once_is_not_retried():
    job("once", max_attempts=1)(noop)
    assert lines()[1][-2:] == ["0 s", "0 s"]


def test_wrong_settings_are_refused(settings):
    settings.DJANGO_JOBS = {"LEESE": 5}
    job("any")(noop)
    with pytest.raises(CommandError, match="Did you mean 'LEASE'"):
        call_command("jobtypes")


def noop() -> None: ...
