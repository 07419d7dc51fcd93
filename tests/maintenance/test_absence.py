"""Workers that do no maintenance say when nobody does."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs.maintenance import absence as absence_module
from django_jobs.maintenance.absence import SAY_AGAIN_SECONDS, Absence
from django_jobs.models import Leadership
from tests.operations.support import committing
from tests.waiting import wait_for
from tests.worker.embedded import running_worker

pytestmark = committing

MINUTE = timedelta(minutes=1)


@pytest.fixture
def look(monkeypatch, caplog):
    """A turn, a minute after the last; returns what it said."""
    absence = Absence("default")
    now = [1000.0]
    monkeypatch.setattr(absence_module.clock, "monotonic", lambda: now[0])

    def look():
        caplog.clear()
        absence.run_once(None)
        now[0] += absence.pause.total_seconds()
        return caplog.messages

    return look


def lead(expired_for):
    values = {"holder": "w", "token": 1, "expires_at": timezone.now() - expired_for}
    Leadership.objects.update_or_create(name="maintenance", defaults=values)


def test_that_nobody_leads_is_said_in_the_second_turn_and_every_ten_minutes(look):
    assert look() == [], "all may be starting together"
    assert "runjobscheduler" in look()[0]
    silent = int(SAY_AGAIN_SECONDS / 60) - 1
    assert [look() for _ in range(silent)] == [[]] * silent
    assert "Nobody leads" in look()[0]


def test_a_leader_that_was_killed_has_a_minute_to_be_followed(look):
    lead(expired_for=MINUTE / 2)
    assert [look() for _ in range(3)] == [[], [], []]
    lead(expired_for=MINUTE * 2)
    look()
    assert look()


def test_that_somebody_leads_again_is_said_once(look, caplog):
    caplog.set_level("INFO", "django_jobs.maintenance")
    look()
    look()
    lead(expired_for=-MINUTE)
    assert look() == ["A worker or scheduler leads the maintenance again."]
    assert look() == []


def test_a_worker_without_scheduler_says_it(caplog, monkeypatch):
    monkeypatch.setattr(Absence, "pause", timedelta(milliseconds=20))
    with running_worker(maintenance=False):
        wait_for(lambda: "Nobody leads the maintenance" in caplog.text)


def test_a_worker_that_takes_part_does_not(caplog, monkeypatch):
    monkeypatch.setattr(Absence, "pause", timedelta(milliseconds=20))
    with running_worker():
        wait_for(Leadership.objects.exists)
    assert "Nobody leads" not in caplog.text
