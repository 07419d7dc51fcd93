"""The pauses of an outage, and what the log says of it."""

from math import inf

import pytest

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.worker.backoff import LOOKS_AFTERWARDS, Backoff


@pytest.fixture
def pass_time(monkeypatch):
    time = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: time[0])

    def pass_time(seconds):
        time[0] += seconds

    return pass_time


def test_pauses_double_from_a_tenth_of_a_second_to_five_seconds(pass_time):
    backoff, pauses = Backoff(), []
    for _ in range(9):
        backoff.failed(EngineUnavailable("away"))
        pauses.append(round(backoff.left, 3))
        pass_time(backoff.left)
        assert backoff.left == 0
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]


def test_the_next_outage_begins_with_a_short_pause_again(pass_time):
    backoff = Backoff()
    for _ in range(4):
        backoff.failed(EngineUnavailable("away"))
    backoff.succeeded()
    assert (backoff.active, backoff.left) == (False, 0)
    backoff.failed(EngineUnavailable("away"))
    assert backoff.left == pytest.approx(0.1)


def test_each_trouble_of_an_outage_is_said_once_and_its_end_too(caplog):
    backoff = Backoff()
    for _ in range(2):
        for trouble in ("away", "away", "starting up", "starting up"):
            backoff.failed(EngineUnavailable(trouble))
        assert backoff.succeeded()
        assert not backoff.succeeded()
    said = [(record.levelname, record.getMessage().rpartition(": ")[2]) for record in caplog.records]
    outage = [("ERROR", "away"), ("ERROR", "starting up"), ("WARNING", "The jobs database is available again.")]
    assert said == outage * 2


def test_what_an_outage_left_behind_is_looked_for_three_times_afterwards(pass_time):
    backoff = Backoff()
    assert backoff.next_look == inf
    backoff.failed(EngineUnavailable("away"))
    backoff.succeeded()
    looked = 0.0
    for at in LOOKS_AFTERWARDS:
        assert backoff.next_look == pytest.approx(at - looked)
        assert not backoff.looks_again()
        pass_time(backoff.next_look)
        assert backoff.looks_again()
        looked = at
    assert not backoff.looks_again()
    assert backoff.next_look == inf


def test_a_new_outage_takes_the_looks_of_the_last_one_along(pass_time):
    backoff = Backoff()
    backoff.failed(EngineUnavailable("away"))
    backoff.succeeded()
    backoff.failed(EngineUnavailable("away"))
    assert backoff.next_look == inf
