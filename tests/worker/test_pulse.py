"""A loop or a renewer that stands still ends the process; a database that does not answer does not."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from django_jobs.worker.pulse import EXIT_STANDSTILL, SLOW_TURNS, Pulse, Watchdog

from .embedded import running_worker

PATIENCE = 10


class Ended(Exception):
    pass


def end(code):
    raise Ended(code)


@pytest.fixture
def session():
    return SimpleNamespace(calling=False)


@pytest.fixture
def pulse(session):
    return Pulse(timedelta(seconds=PATIENCE), session)


@pytest.fixture
def turns():
    return []


@pytest.fixture
def watchdog(pulse, turns):
    return Watchdog({"loop": pulse}, lambda: turns.append(1), end)


def test_what_beats_lives(pulse, watchdog, turns):
    for _ in range(5 * PATIENCE):
        pulse.beat()
        watchdog.turn()
    assert len(turns) == 5 * PATIENCE


def test_what_has_not_beaten_for_longer_than_its_patience_ends_the_process(watchdog, turns, caplog):
    for _ in range(PATIENCE):
        watchdog.turn()
    with pytest.raises(Ended, match=str(EXIT_STANDSTILL)):
        watchdog.turn()
    assert len(turns) == PATIENCE
    assert "The loop has stood still for 11 s" in caplog.text


def test_one_beat_is_a_new_beginning(pulse, watchdog):
    for _ in range(5):
        for _ in range(PATIENCE):
            watchdog.turn()
        pulse.beat()
        watchdog.turn()


def test_waiting_for_the_database_is_no_standing_still_but_slow(pulse, session, watchdog):
    session.calling = True
    for _ in range(SLOW_TURNS - 1):
        watchdog.turn()
    assert not pulse.slow
    for _ in range(10 * PATIENCE):
        watchdog.turn()
    assert pulse.slow
    assert not pulse.stopped


def test_a_state_that_cannot_be_told_ends_nothing(pulse):
    def fail():
        raise OSError("no space")

    Watchdog({"loop": pulse}, fail, end).turn()


def test_a_session_says_while_a_call_is_going_on():
    with running_worker() as worker:
        session = worker.process.loop.session
        assert session.calling in (True, False)
    assert session.calling is False
