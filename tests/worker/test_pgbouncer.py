"""Behind a transaction pooler everything works, by polling, and the log says so once."""

import threading
import time
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from io import StringIO
from urllib.parse import quote

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction

from django_jobs import (
    Actor,
    Cancel,
    DeadFilter,
    RunningJob,
    cancel,
    create_schedule,
    enqueue,
    get_bulk,
    get_job,
    retry_dead,
    start_bulk,
)
from django_jobs.engines import stand_alone
from django_jobs.engines.config import EngineConfig
from django_jobs.models import Job, JobHistory, Leadership, ScheduleSlot, Worker
from django_jobs.models.old_partitions import drop_oldest, freeze_closed
from django_jobs.models.partitions import add_partitions
from django_jobs.worker.freeing import Freer
from tests.app.jobs import mark_atomic_isolated, trick
from tests.app.models import Mark
from tests.engines.support import beside, claim, own_session
from tests.factories import DeadJobFactory, JobFactory
from tests.operations.support import on_postgresql
from tests.pgbouncer import PgBouncer
from tests.waiting import wait_for
from tests.worker.elsewhere import pointed_to, role_with
from tests.worker.embedded import running_worker

pytestmark = on_postgresql

# What PgBouncer itself sets when it hands a connection to another client.
POOLERS = ["application_name", "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings"]


@pytest.fixture
def pooler(committed_data):
    """Whose connections have limits, as the worker would lift them on its own."""
    limits = role_with(statement_timeout="1min", idle_session_timeout="10min")
    with limits, PgBouncer(connection.get_connection_params()) as pooler:
        yield pooler


@pytest.fixture
def behind_pooler(pooler, configure):
    """Workers and this thread go through the pooler."""
    configure(POLL_EVERY=600, POLL_EVERY_UNPROVEN=0.2, LEASE=2)
    with pointed_to(**pooler.place):
        connections["default"].close()
        yield
        connections["default"].close()


@pytest.mark.usefixtures("behind_pooler")
def test_the_worker_polls_and_says_so_once(noop, caplog):
    with running_worker() as worker:
        for _ in range(3):
            enqueued = noop.enqueue()
            wait_for(lambda enqueued=enqueued: get_job(enqueued.id).status == "succeeded")
        assert worker.posture == "awake"
    said = [record for record in caplog.records if "polling every 0.2 s" in record.getMessage()]
    assert len(said) == 1
    assert "not available" not in caplog.text


@pytest.mark.usefixtures("behind_pooler")
def kinds_of_work(job):
    """Handlers: one atomic, one that fails, one async. Two read by a server-side cursor."""

    @job("marks", atomic=True)
    def marks(label: str):
        Mark.objects.create(label=label)

    @job("fails", max_attempts=2)
    def fails():
        assert len(list(Mark.objects.iterator(chunk_size=1))) <= 52
        raise ValueError("no")

    @job("asks_async")
    async def asks_async():
        return [mark.label async for mark in Mark.objects.filter(label="a").aiterator(chunk_size=1)]

    return marks, fails, asks_async


def test_all_kinds_of_work_are_done(job, caplog):
    marks, fails, asks_async = kinds_of_work(job)
    release = threading.Event()

    @job("long")
    def long(run: RunningJob):
        run.progress(0.5)
        assert release.wait(60)
        return run.attempt

    with transaction.atomic():
        first = marks.using(idempotency_key="k").enqueue(label="a")
        assert marks.using(idempotency_key="k").enqueue(label="a").duplicate
    marks.enqueue_many({"label": str(n)} for n in range(50))
    later = marks.using(delay=timedelta(seconds=0.5)).enqueue(label="later")
    failing, running, asking = fails.enqueue(), long.enqueue(), asks_async.enqueue()
    lost = JobFactory(type="asks_async", lapsed=True)
    with running_worker(), running_worker():
        wait_for(lambda: get_job(failing.id).status == "dead", timeout=20)
        assert retry_dead([failing.id]) == 1
        wait_for(lambda: get_job(running.id).progress)
        wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in (first, later, asking, lost)), timeout=20)
        end = time.monotonic() + 4
        wait_for(lambda: time.monotonic() > end, message="two leases to pass")
        release.set()
        wait_for(lambda: get_job(running.id).status == "succeeded")
        doomed = long.using(delay=timedelta(hours=1)).enqueue()
        assert cancel(doomed.id) == "cancelled"
        wait_for(lambda: not Job.objects.exists(), timeout=20)
    assert get_job(running.id).result == 1
    assert Mark.objects.count() == 52
    assert JobHistory.objects.count() == 56
    assert "not available" not in caplog.text


def count_alone():
    """As a thread of maintenance."""
    stand_alone(EngineConfig(alias="default"), timedelta(minutes=10))
    assert not Job.objects.exists()


@pytest.mark.usefixtures("behind_pooler")
def test_nothing_of_a_session_stays_behind_in_the_poolers_connection():
    """One after the other, so that both get the same one."""
    with own_session() as session:
        assert session.can_listen() is False
        assert claim(session) == []
        assert session.outstanding(["default"], timedelta(0)) is False
    with beside(count_alone):
        pass
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_settings WHERE source = 'session' AND name <> ALL (%s)", [POOLERS])
        assert cursor.fetchall() == []
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone() == (0,)


@pytest.mark.usefixtures("behind_pooler")
def test_the_duties_of_the_leader_are_done_and_pass_on_with_the_leadership(noop, caplog):
    def slots():
        return ScheduleSlot.objects.filter(outcome="fired", job_id__isnull=False).count()

    create_schedule("tick", type=noop, every=timedelta(seconds=1))
    dead = DeadJobFactory()
    with running_worker() as first, running_worker() as second:
        wait_for(slots, timeout=20)
        bulk = start_bulk("retry", DeadFilter(), actor=Actor(name="ada", source="code"))
        wait_for(lambda: get_bulk(bulk.id).is_over, timeout=20)
        wait_for(lambda: get_job(dead.id).status == "succeeded")
        workers = {worker.process.id: worker for worker in (first, second)}
        assert set(Worker.objects.filter(stopped_at=None).values_list("id", flat=True)) == set(workers)
        leader = workers.pop(Leadership.objects.get().holder)
        leader.stop()
        leader.join()
        fired, (other,) = slots(), workers
        wait_for(lambda: Leadership.objects.get().holder == other, timeout=20)
        wait_for(lambda: slots() > fired, timeout=20)
        assert Worker.objects.get(stopped_at=None).id == other
    assert "not available" not in caplog.text


@pytest.mark.usefixtures("behind_pooler")
def test_running_jobs_hear_of_a_cancellation_and_are_handed_back_at_a_stop(job, configure):
    configure(SHUTDOWN_TIMEOUT=1)
    began, release = [], threading.Event()

    @job("waits")
    def waits(run: RunningJob):
        began.append(run.id)
        wait_for(lambda: run.is_cancelled() or release.is_set(), timeout=60)
        if run.is_cancelled():
            raise Cancel("as asked")

    cancelled, long = waits.enqueue(), waits.enqueue()
    with running_worker() as worker:
        wait_for(lambda: len(began) == 2)
        assert cancel(cancelled.id) == "requested"
        wait_for(lambda: get_job(cancelled.id).status == "cancelled", timeout=20)
        worker.stop()
        worker.join()
        row = Job.objects.get()
        assert (row.id, row.status, row.attempts, row.lease_token) == (long.id, "scheduled", 0, None)
        release.set()


@pytest.mark.usefixtures("behind_pooler")
@pytest.mark.parametrize("who", ["operator", "supervisor"])
def test_the_leases_of_a_dead_worker_are_freed(who):
    lost = JobFactory(processing=True, locked_by="dead-1")
    if who == "operator":
        call_command("freejobs", "dead-1", stdout=StringIO())
    else:
        freer = Freer(EngineConfig(alias="default"), give_up=timedelta(seconds=20))
        freer.start()
        freer.free("dead-1", "killed by SIGKILL", None)
        freer.close(20)
    (error,) = get_job(lost.id).errors
    assert "dead-1" in error["message"]
    assert Job.objects.get().lease_token is None


@pytest.mark.usefixtures("behind_pooler")
def test_runs_in_processes_of_their_own_go_through_the_pooler_too(monkeypatch):
    place = connection.settings_dict
    url = f"postgresql://{place['USER']}@:{place['PORT']}/{place['NAME']}?host={quote(place['HOST'])}"
    monkeypatch.setenv("DATABASE_URL", url)
    place, marked, atomic = (
        trick.enqueue(name="host"),
        trick.enqueue(name="mark"),
        mark_atomic_isolated.enqueue(label="atomic", fail=False),
    )
    with running_worker(concurrency=1):
        wait_for(lambda: not Job.objects.exists(), timeout=30)
    assert get_job(place.id).result == connection.settings_dict["HOST"]
    assert get_job(marked.id).status == get_job(atomic.id).status == "succeeded"
    assert sorted(Mark.objects.values_list("label", flat=True)) == ["atomic", "clean"]


def lock_timeouts(count):
    """Of so many of the pooler's connections at once."""
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(connection.copy())) for _ in range(count)]
        found = {}
        for client in clients:
            client.set_autocommit(False)
            with client.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid(), current_setting('lock_timeout')")
                found |= dict(cursor.fetchall())
        for client in clients:
            client.rollback()
    return found


@pytest.fixture
def taking_turns(committed_data):
    """This thread goes through a pooler whose three connections take turns: each statement meets another one."""
    with PgBouncer(connection.get_connection_params(), server_round_robin=1) as pooler, pointed_to(**pooler.place):
        connection.close()
        assert len(lock_timeouts(3)) == 3
        yield
        connection.close()


@pytest.mark.usefixtures("taking_turns")
@pytest.mark.parametrize("change", [drop_oldest, freeze_closed])
def test_retention_of_the_history_leaves_no_setting_behind_in_the_poolers_connections(change):
    day = datetime.now(UTC).date() - timedelta(days=40)
    with connection.cursor() as cursor:
        with transaction.atomic():
            add_partitions(cursor, [day])
        assert change(cursor, day + timedelta(days=1))
        assert set(lock_timeouts(3).values()) == {"0"}
        assert bool(drop_oldest(cursor, day + timedelta(days=1))) is (change is freeze_closed)


def test_who_enqueues_through_a_pooler_wakes_a_worker_that_does_not(pooler, noop, configure):
    configure(POLL_EVERY=600)
    with running_worker() as worker:
        wait_for(lambda: worker.posture == "asleep")
        with pointed_to(**pooler.place):
            connections["default"].close()
            with transaction.atomic():
                enqueued = enqueue("noop", {})
            wait_for(lambda: get_job(enqueued.id).status == "succeeded")
            connections["default"].close()


def test_a_session_through_a_pooler_is_no_session_of_ours(pooler):
    with pointed_to(**pooler.place), own_session() as session:
        assert session.can_listen() is False
        assert session._connection.prepare_threshold is None
