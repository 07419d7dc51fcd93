"""The database goes away for a while: nothing is lost, nothing runs twice, and the worker goes on by itself."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, connections

from django_jobs import RunningJob, get_job
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.models import Job, JobHistory
from tests.factories import JobFactory
from tests.postgres_server import PostgresServer
from tests.waiting import wait_for
from tests.worker.elsewhere import other_server
from tests.worker.embedded import drain, running_worker


@pytest.fixture
def only_postgresql():
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no server")


def terminate_other_sessions():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


@pytest.mark.parametrize("asleep", [True, False], ids=["asleep", "busy"])
def test_terminated_sessions_are_replaced_and_nothing_is_lost(noop, only_postgresql, asleep, job):
    release = threading.Event()
    runs = []

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(30)
        return "ended"

    with running_worker() as worker:
        enqueued = long.enqueue()
        wait_for(lambda: runs)
        if asleep:
            wait_for(lambda: worker.posture == "asleep")
        assert terminate_other_sessions() >= 1
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        after = noop.enqueue()
        wait_for(lambda: get_job(after.id).status == "succeeded")
    assert runs == [1]


def test_a_password_that_cannot_be_fetched_for_a_while_costs_no_run(only_postgresql, job, monkeypatch):
    """A backend may ask another service for it, whose errors are not the database's."""
    away, release, runs = threading.Event(), threading.Event(), []
    wrapper = type(connections["default"])
    parameters = wrapper.get_connection_params

    def fetch(self):
        if away.is_set():
            raise RuntimeError("no token")
        return parameters(self)

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(30)

    monkeypatch.setattr(wrapper, "get_connection_params", fetch)
    with running_worker() as worker:
        enqueued = long.enqueue()
        wait_for(lambda: runs)
        away.set()
        terminate_other_sessions()
        wait_for(lambda: worker.process.loop.in_outage)
        wait_for(lambda: worker.process.loop._backoff._pause > 0.2, message="a connection that could not be made")
        away.clear()
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        assert worker.alive
    assert runs == [1]


def test_repeated_terminations_under_load_lose_nothing_and_repeat_nothing(job, only_postgresql):
    @job("counts")
    def counts(n: int):
        pass

    enqueued = counts.enqueue_many({"n": n} for n in range(3000))
    with running_worker(concurrency=4):
        for part in range(1, 6):
            wait_for(lambda part=part: JobHistory.objects.count() > part * 400, timeout=30)
            terminate_other_sessions()
        wait_for(lambda: not Job.objects.exists(), timeout=40)
    assert JobHistory.objects.filter(status="succeeded").count() == len(enqueued)
    assert set(JobHistory.objects.values_list("attempts", flat=True)) == {1}


def test_settling_that_fails_is_tried_until_it_succeeds(job, monkeypatch):
    session_type = type(open_session(EngineConfig(alias="default")))
    real, failures, runs = session_type.tick, [], []

    def tick(self, outcomes, claims):
        if outcomes and len(failures) < 3:
            failures.append(1)
            raise EngineUnavailable("not now")
        return real(self, outcomes, claims)

    monkeypatch.setattr(session_type, "tick", tick)

    @job("once")
    def once(run: RunningJob):
        runs.append(run.attempt)

    enqueued = once.enqueue()
    drain()
    assert (get_job(enqueued.id).status, runs, len(failures)) == ("succeeded", [1], 3)


def test_renewals_that_fail_again_and_again_are_said_once_and_so_is_their_end(job, monkeypatch, configure, caplog):
    configure(LEASE=4)
    session_type = type(open_session(EngineConfig(alias="default")))
    real, failures, release = session_type.renew, [], threading.Event()

    def renew(self, leases):
        if len(failures) < 4:
            failures.append(1)
            raise EngineUnavailable("not now")
        return real(self, leases)

    monkeypatch.setattr(session_type, "renew", renew)

    @job("long")
    def long():
        assert release.wait(30)

    with running_worker():
        long.enqueue()
        wait_for(lambda: "Leases are renewed again." in caplog.text, timeout=30)
        release.set()
    assert len(failures) == 4
    assert caplog.text.count("Leases could not be renewed") == 1


def test_a_claim_whose_answer_was_lost_is_given_back_unharmed(job, noop, monkeypatch):
    session_type = type(open_session(EngineConfig(alias="default")))
    real, lost = session_type.tick, []

    def tick(self, outcomes, claims):
        answer = real(self, outcomes, claims)
        if any(answer.jobs) and not lost:
            lost.extend(answer.jobs[0])
            raise EngineUnavailable("the answer was lost")
        return answer

    enqueued = noop.enqueue()
    monkeypatch.setattr(session_type, "tick", tick)
    drain()
    info = get_job(enqueued.id)
    assert (len(lost), info.status, info.attempts) == (1, "succeeded", 1)


def test_a_claim_that_commits_only_after_the_outage_is_given_back_unharmed(noop, monkeypatch):
    """A disk or a standby stood still: the worker gave its call up, and the server carried it out all the same."""
    session_type = type(open_session(EngineConfig(alias="default")))
    real_tick, real_leases = session_type.tick, session_type.my_leases
    given_up, late = [], []

    def tick(self, outcomes, claims):
        if not given_up:
            given_up.append(1)
            raise EngineUnavailable("no answer")
        return real_tick(self, outcomes, claims)

    def my_leases(self):
        leases = real_leases(self)
        if given_up and not late and threading.current_thread().name == "worker under test":
            late.append(JobFactory(processing=True, locked_by=self.config.worker, lease_token=1))
        return leases

    monkeypatch.setattr(session_type, "tick", tick)
    monkeypatch.setattr(session_type, "my_leases", my_leases)
    with running_worker():
        wait_for(lambda: late and get_job(late[0].id).status == "succeeded", timeout=20)
    info = get_job(late[0].id)
    assert (info.status, info.attempts, info.errors) == ("succeeded", 1, ())


def test_a_standby_that_stands_still_for_longer_than_a_call_may_take_costs_no_attempt(
    noop, only_postgresql, configure, caplog
):
    """Commits wait for it. The worker gives its claims up, and the server commits them when the standby is back."""
    configure(LEASE=12)
    with PostgresServer(synchronous_commit="on") as server, other_server(server):
        with running_worker() as worker, connections["default"].cursor() as cursor:
            wait_for(lambda: worker.posture == "asleep")
            cursor.execute("SET synchronous_commit = local")
            cursor.execute("ALTER SYSTEM SET synchronous_standby_names = 'stands_still'")
            cursor.execute("SELECT pg_reload_conf()")
            jobs = noop.enqueue_many({} for _ in range(30))
            wait_for(lambda: "has not answered for 5 s" in caplog.text, timeout=20)
            wait_for(lambda: worker.process.loop._backoff._pause > 0.1, timeout=20, message="the next claim to stall")
            assert "available again" not in caplog.text, "who only answers questions is not back"
            cursor.execute("ALTER SYSTEM RESET synchronous_standby_names")
            cursor.execute("SELECT pg_reload_conf()")
            wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in jobs), timeout=30)
        assert {get_job(one.id).attempts for one in jobs} == {1}
        assert not any(get_job(one.id).errors for one in jobs)
        connections["default"].close()


def test_an_outage_noticed_on_going_to_sleep_is_not_slept_through(noop, only_postgresql, configure, monkeypatch):
    configure(POLL_EVERY=600)
    with running_worker(maintenance=False) as worker:
        wait_for(lambda: worker.posture == "asleep")
        session, looks = worker.process._session, []
        real = session.take_notification

        def take_notification():
            looks.append(1)
            if len(looks) == 2:  # the first one ends the wait, the second one comes before the next
                session.close()
                raise EngineUnavailable("gone")
            return real()

        monkeypatch.setattr(session, "take_notification", take_notification)
        worker.process.loop.poke.poke()
        wait_for(lambda: len(looks) > 1)
        enqueued = noop.enqueue()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")


def test_what_a_stopping_worker_hands_back_survives_an_outage_of_a_few_seconds(job, monkeypatch):
    session_type = type(open_session(EngineConfig(alias="default")))
    real, away_until, started, release = session_type.my_leases, [], threading.Event(), threading.Event()

    @job("long")
    def long():
        started.set()
        release.wait(60)

    def is_away():
        return bool(away_until) and time.monotonic() < away_until[0]

    def my_leases(self):
        if is_away():
            raise EngineUnavailable("away")
        return real(self)

    def tick(self, outcomes, claims, real=session_type.tick):
        if is_away():
            raise EngineUnavailable("away")
        return real(self, outcomes, claims)

    monkeypatch.setattr(session_type, "my_leases", my_leases)
    monkeypatch.setattr(session_type, "tick", tick)
    enqueued = long.enqueue()
    with running_worker() as worker:
        assert started.wait(20)
        away_until.append(time.monotonic() + 2)
        worker.stop()
        worker.stop()
        worker.join()
        release.set()
    row = Job.objects.get(pk=enqueued.id)
    assert (row.status, row.attempts) == ("scheduled", 0)


def test_a_maintenance_service_that_breaks_does_not_stop_the_others(job, noop, monkeypatch):
    session_type = type(open_session(EngineConfig(alias="default")))

    def rescue(self, judge):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(session_type, "rescue", rescue)
    enqueued = noop.using(delay=timedelta(milliseconds=200)).enqueue()
    drain()
    assert get_job(enqueued.id).status == "succeeded"


def test_a_writer_that_keeps_the_database_locked_only_delays(job, noop):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no lock of the whole database")
    other = connections["default"].copy()
    with running_worker() as worker:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("INSERT INTO tests_app_mark (label, pid) VALUES ('held', 0)")
        waiting = threading.Thread(target=worker.process.loop.poke.poke)
        waiting.start()
        waiting.join()
        assert worker.alive
        other.rollback()
        enqueued = noop.enqueue()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    other.close()
