"""A loop or a renewer that stands still ends the process; a database that does not answer does not."""

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from django_jobs import get_job
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.maintenance.firing import Firing
from django_jobs.maintenance.lookout import Lookout
from django_jobs.maintenance.reporter import Reporter
from django_jobs.worker import exit_codes
from django_jobs.worker.overruns import LOOK_SECONDS
from django_jobs.worker.pulse import SLOW_TURNS, Pulse, Watchdog
from django_jobs.worker.scheduler import SchedulerProcess
from tests.app.jobs import nap
from tests.waiting import wait_for

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
    with pytest.raises(Ended, match=str(exit_codes.STANDSTILL)):
        watchdog.turn()
    assert len(turns) == PATIENCE
    assert "The loop has stood still for 11 s" in caplog.text


def test_one_beat_is_a_new_beginning(pulse, watchdog):
    for _ in range(5):
        for _ in range(PATIENCE):
            watchdog.turn()
        pulse.beat()
        watchdog.turn()


def test_who_says_that_it_rests_is_given_that_time_besides_and_no_more_after_the_next_beat(pulse, watchdog):
    pulse.beat(rest=30)
    for _ in range(1 + 30 + PATIENCE):
        watchdog.turn()
    pulse.beat()
    for _ in range(1 + PATIENCE):
        watchdog.turn()
    with pytest.raises(Ended):
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


def test_a_sleeping_loop_says_for_how_long_and_a_busy_one_looks_around(configure, monkeypatch):
    """So that neither is taken for one that stands still, nor the other way round, however rarely it polls."""
    rests, beat = [], Pulse.beat

    def recorded(self, rest=0.0):
        rests.append((self, rest))
        beat(self, rest)

    monkeypatch.setattr(Pulse, "beat", recorded)
    configure(POLL_EVERY=600, POLL_EVERY_UNPROVEN=600)
    with running_worker(maintenance=False) as worker:
        pulse = worker.process.pulses["loop"]
        wait_for(lambda: (pulse, 600) in rests, message="a long sleep")
        nap.enqueue(label="a", seconds=0.5)
        wait_for(lambda: (pulse, LOOK_SECONDS) in rests, message="a short one beside a running job")


def test_a_session_says_while_a_call_is_going_on():
    with running_worker() as worker:
        session = worker.process.loop.session
        assert session.calling in (True, False)
    assert session.calling is False


@pytest.fixture
def hanging_maintenance(monkeypatch):
    """Hangs in its first turn, until the event is set. It may hang for two seconds."""
    release = threading.Event()
    monkeypatch.setattr(Reporter, "run_once", lambda self, session: release.wait(60))
    for user in ("process", "scheduler"):
        monkeypatch.setattr(f"django_jobs.worker.{user}.MAINTENANCE_STANDSTILL", timedelta(seconds=2))
    yield release
    release.set()


@pytest.mark.parametrize("shared", [True, False], ids=["with scheduler", "without scheduler"])
def test_a_worker_whose_maintenance_stands_still_lets_its_running_jobs_end_and_ends_also_when_it_is_told_to(
    job, hanging_maintenance, caplog, shared
):
    finish = threading.Event()

    @job("long")
    def long():
        assert finish.wait(60)

    enqueued = long.enqueue()
    with running_worker(maintenance=shared) as worker:
        wait_for(lambda: "Maintenance stands still" in caplog.text, timeout=20)
        assert not worker.process.vitals().live
        worker.stop()
        worker.wait_for_turns(5)
        finish.set()
        wait_for(lambda: not worker.alive, timeout=20)
        hanging_maintenance.set()
    assert worker.code == exit_codes.STANDSTILL
    assert (get_job(enqueued.id).status, get_job(enqueued.id).attempts) == ("succeeded", 1)


def test_a_scheduler_that_stands_still_ends(hanging_maintenance, monkeypatch):
    codes = []
    monkeypatch.setattr("django_jobs.worker.pulse.end_process", codes.append)
    scheduler = SchedulerProcess()
    thread = threading.Thread(target=scheduler.run, name="scheduler under test")
    thread.start()
    wait_for(lambda: codes, timeout=20)
    assert not scheduler.vitals().live
    scheduler.stop()
    hanging_maintenance.set()
    thread.join(20)
    assert codes[0] == exit_codes.STANDSTILL


def test_maintenance_that_cannot_reach_the_database_does_not_stand_still(monkeypatch, hanging_maintenance):
    """Every turn fails, for longer than it may hang."""
    hanging_maintenance.set()

    def fail(*_):
        raise EngineUnavailable("gone")

    monkeypatch.setattr(Lookout, "run_once", fail)
    monkeypatch.setattr(Firing, "run_once", fail)
    monkeypatch.setattr(Reporter, "run_once", fail)
    with running_worker() as worker:
        pulse, turns = worker.process._maintenance_pulse, []
        feel = pulse.feel
        monkeypatch.setattr(pulse, "feel", lambda: (turns.append(pulse.missed), feel()))
        wait_for(lambda: len(turns) > 5, timeout=20, message="five turns of the watchdog")
        assert not pulse.stopped
        assert worker.process.vitals().live
    assert worker.code == 0
