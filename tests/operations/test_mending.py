"""Schedules that no build can fire are marked broken, and heal when the reason is gone."""

from datetime import timedelta

import pytest

from django_jobs.models import Job, Schedule
from django_jobs.operations.firing import SetAside
from django_jobs.operations.mending import mend
from django_jobs.registry import registry
from tests.operations import handlers
from tests.operations.schedules import MINUTE, fire, get, make

pytestmark = pytest.mark.django_db


@pytest.fixture
def forget_type():
    """Another build, which has no such type."""
    before = dict(registry._by_name)

    def forget_type(name):
        registry._by_name = {known: found for known, found in before.items() if known != name}

    forget_type.undo = lambda: setattr(registry, "_by_name", before)
    yield forget_type
    forget_type.undo()


def test_a_type_that_is_gone_breaks_the_schedule_after_a_minute(forget_type):
    make(late=MINUTE * 2)
    forget_type("operations.note")
    assert (fire(), mend(SetAside())) == (0, 1)
    assert "No handler is registered as 'operations.note'" in get().broken
    assert get().look_at is None
    assert mend(SetAside()) == 0


def test_within_a_minute_another_build_may_fire_it(forget_type):
    make(late=timedelta(0), every=timedelta(seconds=1))
    forget_type("operations.note")
    assert mend(SetAside()) == 0
    forget_type.undo()
    fire()
    assert Job.objects.exists()


def test_when_the_type_is_back_it_heals_and_catches_up_by_its_policy(forget_type):
    make(late=MINUTE * 5)
    forget_type("operations.note")
    mend(SetAside())
    forget_type.undo()
    assert mend(SetAside()) == 1
    assert get().broken == ""
    fire()
    assert Job.objects.count() == 1


def test_one_that_was_new_when_its_type_was_missing_heals_too(forget_type):
    forget_type("operations.note")
    Schedule.objects.create(name="digest", type="operations.note", every=MINUTE)
    Schedule.objects.update(created_at="2020-01-01T00:00Z")
    mend(SetAside())
    assert "No handler" in get().broken
    forget_type.undo()
    mend(SetAside())
    fire()
    assert get().broken == ""
    assert get().next_run_at > get().now - timedelta(seconds=30)
    assert not Job.objects.exists()


def test_a_payload_that_does_not_fit_breaks_it_and_one_that_does_heals_it():
    make(late=MINUTE * 2, payload={"txet": "x"})
    aside = SetAside()
    fire(aside=aside)
    assert mend(aside) == 1
    assert "txet" in get().broken
    Schedule.objects.update(payload={"text": "x"})
    assert mend(SetAside()) == 1
    fire()
    assert Job.objects.get().payload == {"text": "x"}


def test_a_zone_that_is_unknown_here_heals_where_it_is_known(monkeypatch):
    make(late=None, every=None, cron="0 8 * * *", timezone="Mars/Olympus")
    Schedule.objects.update(planned="")
    fire()
    assert "Mars/Olympus" in get().broken
    Schedule.objects.update(timezone="Asia/Kolkata")
    fire()
    assert get().broken == ""
    assert get().next_run_at.minute == 30


def test_what_is_late_but_can_be_fired_is_left_to_the_firing():
    make(late=timedelta(days=2))
    assert mend(SetAside()) == 0
    assert get().broken == ""


def test_the_others_stay_as_they_are():
    make("fine", late=-MINUTE)
    make("broken", broken="why", late=-MINUTE)
    before = get("fine").updated_at
    assert mend(SetAside()) == 1
    assert (get("broken").broken, get("fine").updated_at) == ("", before)


def test_the_types_of_the_tests_are_registered():
    assert registry.get("operations.note") is handlers.note.job_type
