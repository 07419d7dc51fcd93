"""``schedule()`` in ``jobs.py``: validated when the module is imported."""

from datetime import timedelta

import pytest

import django_jobs
from django_jobs import schedule
from django_jobs.checks import check_declared_schedules
from django_jobs.exceptions import InvalidPayload, InvalidSchedule
from django_jobs.operations import declared_schedules as module
from django_jobs.operations.declared_schedules import DeclaredSchedules
from tests.operations import handlers


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    declared = DeclaredSchedules()
    for place in ("django_jobs.declaring", "django_jobs.checks", module.__name__):
        monkeypatch.setattr(f"{place}.declared_schedules", declared)
    return declared


def test_a_schedule_is_declared_for_a_handler(declared):
    schedule("digest", type=handlers.note, payload={"text": "x"}, cron="@daily", timezone="Asia/Kolkata")
    (spec,) = declared
    assert (spec.type, spec.cron, spec.timezone, spec.payload) == (
        "operations.note",
        "0 0 * * *",
        "Asia/Kolkata",
        {"text": "x"},
    )


def test_or_for_a_name(declared):
    schedule("digest", type="operations.note", every=timedelta(seconds=10))
    assert [spec.type for spec in declared] == ["operations.note"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"cron": "61 * * * *"}, InvalidSchedule),
        ({"cron": "@daily", "timezone": "Asia/Calcuta"}, InvalidSchedule),
        ({"cron": "@daily", "payload": {"txet": "x"}}, InvalidPayload),
        ({"cron": "@daily", "catch_up": "lates"}, InvalidSchedule),
        ({}, InvalidSchedule),
        ({"crom": "@daily"}, TypeError),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_at_import(declared, fault, error):
    with pytest.raises(error):
        schedule("digest", type=handlers.note, **fault)
    assert list(declared) == []


def test_two_of_one_name_are_refused():
    schedule("digest", type=handlers.note, cron="@daily")
    with pytest.raises(InvalidSchedule, match="declared twice"):
        schedule("digest", type=handlers.note, cron="@hourly")


def test_a_type_may_be_registered_later_and_the_check_says_if_it_is_not():
    schedule("digest", type="operations.noet", cron="@daily")
    (message,) = check_declared_schedules()
    assert message.id == "django_jobs.E010"
    assert "Did you mean 'operations.note'?" in message.msg


def test_the_check_is_content_with_what_is_right():
    schedule("digest", type="operations.note", cron="@daily")
    assert check_declared_schedules() == []


def test_it_is_the_packages():
    assert django_jobs.schedule is schedule
