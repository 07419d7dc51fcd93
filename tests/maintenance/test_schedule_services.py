"""The services that fire, declare and mend: when they come again, and what they survive."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from django_jobs.maintenance import declarer as declarer_module
from django_jobs.maintenance import firing as firing_module
from django_jobs.maintenance.declarer import Declarer
from django_jobs.maintenance.firing import CONTENDED, COVERED, LONGEST, SHORTEST, UNCOVERED, Firing
from django_jobs.maintenance.mender import Mender
from django_jobs.models import Job, Schedule
from django_jobs.operations.declared_schedules import Synced
from django_jobs.operations.firing import SetAside
from tests.operations.schedules import away_from_the_next_minute, get, make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("away_from_the_next_minute")]
__all__ = ["away_from_the_next_minute"]


@pytest.fixture
def firing():
    return Firing(SetAside())


@pytest.fixture
def next_look(monkeypatch):
    def next_look(seconds):
        monkeypatch.setattr(firing_module, "next_look", lambda aside: seconds)

    return next_look


@pytest.mark.parametrize(
    ("seconds", "pause"),
    [
        (None, LONGEST),
        (3600, LONGEST),
        (10**12, LONGEST),
        (1.5, timedelta(seconds=1.5)),
        (0.0001, SHORTEST),
    ],
)
def test_it_comes_again_when_the_next_slot_is_due(firing, next_look, seconds, pause):
    next_look(seconds)
    assert firing.run_once(None) == 0
    assert firing.pause == pause


def test_it_fires_and_comes_again_at_once(firing):
    make(late=timedelta(0))
    assert firing.run_once(None) == 1
    assert firing.pause == SHORTEST
    assert Job.objects.count() == 1
    firing.run_once(None)
    assert firing.pause > SHORTEST


def test_it_does_not_spin_while_others_have_the_rows(firing, next_look):
    next_look(-1)
    firing.run_once(None)
    assert firing.pause == CONTENDED


def test_one_that_does_not_lead_comes_a_little_later(next_look):
    firing = Firing(SetAside(), leads=lambda: False)
    make(late=timedelta(0))
    next_look(-0.5)
    assert firing.run_once(None) == 0
    assert firing.pause == timedelta(seconds=0.5)
    next_look(-1.5)
    assert firing.run_once(None) == 1
    next_look(3600)
    firing.run_once(None)
    assert firing.pause == COVERED


def test_one_that_knows_what_the_leader_may_not_looks_for_edits_itself(next_look):
    firing = Firing(SetAside(), leads=lambda: False, is_covered=lambda: False)
    for seconds in (None, 3600):
        next_look(seconds)
        firing.run_once(None)
        assert firing.pause == UNCOVERED < timedelta(seconds=5)


def test_an_outage_is_waited_out_on_a_fresh_connection(firing, monkeypatch):
    def gone(aside):
        raise OperationalError("server closed the connection unexpectedly")

    closed = []
    monkeypatch.setattr(connection, "close", lambda: closed.append(True))
    monkeypatch.setattr(firing_module, "next_look", gone)
    with pytest.raises(OperationalError):
        firing.run_once(None)
    assert closed
    assert firing.pause == timedelta(seconds=1)


def test_it_marks_and_heals(firing):
    make(late=timedelta(minutes=2), payload={"txet": "x"})
    aside = SetAside()
    Firing(aside).run_once(None)
    assert Mender(aside).run_once(None) == 1
    assert "txet" in get().broken


def test_a_follower_heals_what_the_leader_may_not_know_and_marks_nothing():
    healthy = make("healthy", late=timedelta(minutes=2), broken="no handler is registered")
    make("foreign", late=timedelta(minutes=2), type="tomorrow.note")
    make("hopeless", type="tomorrow.note", broken="no handler is registered")
    covered, uncovered = (Mender(SetAside(), lambda: False, lambda answer=answer: answer) for answer in (True, False))
    assert covered.run_once(None) == 0
    assert uncovered.run_once(None) == 1
    assert [get(name).broken for name in ("healthy", "foreign", "hopeless")] == ["", "", "no handler is registered"]
    assert get("healthy").next_run_at == healthy.next_run_at


def test_what_left_the_code_is_forgotten_only_by_one_that_has_watched(monkeypatch):
    asked = []

    def sync(*, forget):
        asked.append(forget)
        return []

    monkeypatch.setattr(declarer_module, "sync_schedules", sync)
    now = [1000.0]
    monkeypatch.setattr(declarer_module.clock, "monotonic", lambda: now[0])
    declarer = Declarer()
    for seconds in (0, 60, 60, 600, 60):
        now[0] += seconds
        declarer.run_once(None)
    assert asked == [False, True, True, False, True]


def test_a_declaration_that_is_wrong_is_logged(monkeypatch, caplog):
    wrong = Synced(name="digest", action="wrong", detail="no such type")
    monkeypatch.setattr(declarer_module, "sync_schedules", lambda **how: [wrong])
    Declarer().run_once(None)
    assert "'digest'" in caplog.text
    assert "no such type" in caplog.text


def test_without_schedules_there_is_nothing_to_do(firing):
    assert [Declarer().run_once(None), firing.run_once(None), Mender(SetAside()).run_once(None)] == [0, 0, 0]
    assert not Schedule.objects.exists()
