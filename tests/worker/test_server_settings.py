"""Time-outs, isolation levels and moods of the server that the project or an operator chose for other reasons."""

import logging
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from django.db import connection, connections, transaction

from django_jobs import RunningJob, get_job
from django_jobs.engines import stand_alone
from django_jobs.engines.config import SHORTEST_PATIENCE, EngineConfig
from django_jobs.maintenance.upkeep import SLOW_PATIENCE
from django_jobs.models import Job, JobHistory
from tests.app.models import Mark
from tests.engines.support import beside, own_session
from tests.operations.support import on_postgresql
from tests.postgres_server import PostgresServer
from tests.waiting import wait_for
from tests.worker.elsewhere import other_server, pointed_to, role_with
from tests.worker.embedded import drain, running_worker

pytestmark = on_postgresql

LIMITS = ["statement_timeout", "transaction_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout"]
TIMEOUTS = dict.fromkeys(["lock_timeout", *LIMITS], "300ms")
LIMITS_IN_FORCE = "SELECT name, setting FROM pg_settings WHERE name = ANY (%s)"


def forgotten_transactions():
    """Sessions that stand in a transaction without doing anything."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND state = 'idle in transaction' AND state_change < clock_timestamp() - interval '0.2 s'"
        )
        return cursor.fetchone()[0]


def limits_of_session():
    with own_session() as session:
        session.outstanding(["default"], timedelta(0))
        return session._connection.execute(LIMITS_IN_FORCE, [list(TIMEOUTS)]).fetchall(), session.config.patience


def limits_of_maintenance(patience):
    """Of Django's connection in a thread of maintenance."""

    def ask():
        stand_alone(EngineConfig(alias="default"), patience)
        with connections["default"].cursor() as cursor:
            cursor.execute(LIMITS_IN_FORCE, [list(TIMEOUTS)])
            found.extend(cursor.fetchall())

    found = []
    with beside(ask):
        pass
    return found, patience


@pytest.mark.parametrize(
    "limits_of",
    [limits_of_session, *(partial(limits_of_maintenance, patience) for patience in (SHORTEST_PATIENCE, SLOW_PATIENCE))],
    ids=["session", "maintenance", "slow maintenance"],
)
def test_the_servers_limits_are_lifted_on_sessions_of_our_own(limits_of):
    with role_with(**TIMEOUTS):
        rows, patience = limits_of()
    limits = dict(rows)
    assert limits.pop("lock_timeout") == "300", "a lock that is not to be had is no reason to wait"
    assert int(limits.pop("idle_in_transaction_session_timeout")) == patience.total_seconds() * 1000
    assert set(limits.values()) == {"0"}


def test_short_time_outs_of_the_server_cost_neither_a_run_nor_a_connection(job, caplog):
    release, runs = threading.Event(), []

    @job("long")
    def long(run: RunningJob):
        Mark.objects.create(label="before")
        runs.append(run.attempt)
        assert release.wait(30)

    @job("queries")
    def queries():
        Mark.objects.count()

    with role_with(**TIMEOUTS), pointed_to(CONN_MAX_AGE=600, CONN_HEALTH_CHECKS=True), running_worker() as worker:
        long.enqueue()
        wait_for(lambda: runs)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert not forgotten_transactions(), "a plain handler runs outside of any transaction"
        generation = worker.process._session.generation
        release.set()
        queries.enqueue_many({} for _ in range(500))
        wait_for(lambda: not Job.objects.exists(), timeout=30)
        wait_for(lambda: worker.posture == "asleep")
        end = time.monotonic() + 1
        wait_for(lambda: time.monotonic() > end, message="three idle time-outs to pass")
        assert (worker.posture, worker.process._session.generation) == ("asleep", generation)
    assert set(JobHistory.objects.values_list("status", "attempts")) == {("succeeded", 1)}
    assert "not available" not in caplog.text
    assert "could not be renewed" not in caplog.text


def test_an_atomic_run_that_the_server_ends_fails_and_leaves_nothing(job):
    @job("dawdles", atomic=True, max_attempts=2)
    def dawdles(run: RunningJob):
        Mark.objects.create(label=f"attempt {run.attempt}")
        if run.attempt == 1:
            threading.Event().wait(0.8)  # the handler idles inside its transaction

    with role_with(idle_in_transaction_session_timeout="300ms"), pointed_to():
        enqueued = dawdles.enqueue()
        drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts) == ("succeeded", 2)
    assert list(Mark.objects.values_list("label", flat=True)) == ["attempt 2"]


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_another_isolation_level_of_the_project_changes_nothing(job, level):
    @job("noop")
    def noop(n: int):
        pass

    @job("marks", atomic=True)
    def marks(n: int):
        Mark.objects.create(label=str(n))

    with pointed_to(options={"isolation_level": level}):
        connections["default"].close()
        try:
            with transaction.atomic():
                Mark.objects.count()
                noop.enqueue_many({"n": n} for n in range(400))
                marks.enqueue_many({"n": n} for n in range(200))
                first = marks.using(idempotency_key="k").enqueue(n=200)
                assert marks.using(idempotency_key="k").enqueue(n=200).id == first.id
            with running_worker(), running_worker(), running_worker():
                wait_for(lambda: not Job.objects.exists(), timeout=60)
        finally:
            connections["default"].close()
    assert sorted(JobHistory.objects.values_list("status", "attempts").distinct()) == [("succeeded", 1)]
    assert JobHistory.objects.count() == 601
    assert sorted(map(int, Mark.objects.values_list("label", flat=True))) == list(range(201))


@contextmanager
def read_only(server):
    """It takes no writes for the time of the block."""
    with psycopg.connect(server.url(), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        admin.execute("SELECT pg_reload_conf()")
        yield
        admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
        admin.execute("SELECT pg_reload_conf()")


def test_a_server_that_turns_read_only_for_a_while_is_left_and_found_again(job, noop, caplog):
    runs, gates = [], [threading.Event() for _ in range(8)]

    @job("long")
    def long(run: RunningJob, n: int):
        runs.append((n, run.attempt))
        assert gates[n].wait(60)
        return f"{n} ended meanwhile"

    def is_refused(n):
        """A session hears of the changed setting when its server process has time: until then, runs still end."""
        gates[n].set()
        wait_for(lambda: "read-only transaction" in caplog.text or get_job(ids[n]).status == "succeeded", timeout=30)
        return get_job(ids[n]).status == "processing"

    with PostgresServer() as server, other_server(server), running_worker(concurrency=len(gates)) as worker:
        ids = [long.enqueue(n=n).id for n in range(len(gates))]
        wait_for(lambda: len(runs) == len(gates))
        before = worker.process._session.generation
        with read_only(server):
            refused = next(n for n in range(len(gates)) if is_refused(n))
            # It answers what is only read all the while.
            wait_for(lambda: worker.process.loop._backoff._pause > 1, timeout=30, message="the pauses to grow")
            assert "available again" not in caplog.text
        for gate in gates:
            gate.set()
        wait_for(lambda: all(get_job(each).status == "succeeded" for each in ids), timeout=30)
        later = noop.enqueue()
        wait_for(lambda: get_job(later.id).status == "succeeded", timeout=30)
        assert worker.process._session.generation > before, "the next attempt may reach another server"
        info = get_job(ids[refused])
        connections["default"].close()
    assert sorted(runs) == [(n, 1) for n in range(len(gates))]
    assert (info.result, info.attempts) == (f"{refused} ended meanwhile", 1)
    said = [r for r in caplog.records if r.levelno == logging.ERROR and "read-only transaction" in r.getMessage()]
    assert len(said) == 1, "an outage is said once"
    assert caplog.text.count("available again") == 1
