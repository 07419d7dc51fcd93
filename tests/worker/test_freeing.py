"""Who clears up after a dead process looks again: when the database was away, and for what commits late."""

from datetime import timedelta

import pytest

from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.models import Job, Worker
from django_jobs.worker import freeing
from django_jobs.worker.freeing import Freer
from tests.factories import JobFactory, WorkerFactory
from tests.waiting import wait_for

CONFIG = EngineConfig(alias="default", worker="supervisor-1")
GIVE_UP = timedelta(seconds=120)


@pytest.fixture
def looks(monkeypatch):
    """What happens at the start of each look, in order; the list gets shorter."""
    monkeypatch.setattr(freeing, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(freeing, "PASSES", (0.05, 0.1))
    looks = []

    def open_watched_session(config):
        session = open_session(config)
        free = session.free

        def watched_free(worker, judge):
            if looks:
                looks.pop(0)()
            return free(worker, judge)

        monkeypatch.setattr(session, "free", watched_free)
        return session

    monkeypatch.setattr(freeing, "open_session", open_watched_session)
    return looks


@pytest.fixture
def freer():
    freers = []

    def freer(give_up=GIVE_UP):
        freers.append(Freer(CONFIG, give_up))
        freers[-1].start()
        return freers[-1]

    yield freer
    for one in freers:
        one.close(10)


def nothing():
    pass


def be_away():
    raise EngineUnavailable("the server is gone")


def held_by(worker, **more):
    return JobFactory(processing=True, locked_by=worker, **more)


def is_free(job):
    row = Job.objects.get(pk=job.pk)
    return row.status == "scheduled" and (row.attempts, row.lost_runs) == (1, 1)


def test_a_database_that_was_away_at_the_death_is_asked_again_until_it_answers(looks, freer, caplog):
    WorkerFactory(id="w-1")
    job = held_by("w-1")
    looks += [be_away, be_away, be_away]
    freer().free("w-1", "worker died: SIGKILL", None)
    wait_for(lambda: is_free(job))
    assert "worker died: SIGKILL" in Job.objects.get().errors[0]["message"]
    wait_for(lambda: Worker.objects.get().stopped_at is not None)
    assert caplog.text.count("The jobs of w-1 could not be freed, and will be rescued if that goes on") == 3


def test_after_two_leases_nobody_asks_any_more(looks, freer, caplog):
    given_up, other = held_by("w-1"), held_by("w-2")
    looks += [be_away]
    one = freer(give_up=timedelta(0))
    one.free("w-1", "worker died: SIGKILL", None)
    wait_for(lambda: "could not be freed" in caplog.text)
    one.free("w-2", "worker died: SIGKILL", None)
    wait_for(lambda: is_free(other))
    one.close(10)
    assert Job.objects.get(pk=given_up.pk).status == "processing", "its lease is found by the rescue"


def test_what_the_dead_process_committed_late_is_freed_by_the_second_and_the_third_look(looks, freer, caplog):
    late = []

    def commit():
        late.append(held_by("w-1"))

    looks += [nothing, commit, commit]
    one = freer()
    one.free("w-1", "worker died: SIGKILL", None)
    wait_for(lambda: len(late) == 2 and all(map(is_free, late)))
    one.close(10)
    assert caplog.text.count("worker died: SIGKILL (w-1): 1 jobs are free again") == 2


def test_who_closes_waits_for_one_look_at_each_and_no_longer(looks, freer, monkeypatch):
    monkeypatch.setattr(freeing, "RETRY_SECONDS", 600)
    jobs = [held_by("w-1"), held_by("w-2")]
    looks += [be_away]
    one = freer()
    one.free("w-1", "worker died: SIGKILL", None)
    wait_for(lambda: not looks and one._dead, message="the first to be put off")
    one.free("w-2", "worker died: SIGKILL", None)
    one.close(10)
    assert all(map(is_free, jobs))
