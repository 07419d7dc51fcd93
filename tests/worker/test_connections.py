"""Database connections around a run: nothing stale before it, nothing open after it."""

from contextlib import nullcontext
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction

from django_jobs import RunningJob, get_job
from django_jobs.models import DeadJob
from tests.app.jobs import kept_session, terminate_once, terminated_isolated, trick
from tests.app.models import Mark, Note
from tests.waiting import wait_for
from tests.worker.elsewhere import pointed_to, pool_of
from tests.worker.embedded import drain, running_worker


def marks():
    return list(Mark.objects.order_by("pk").values_list("label", flat=True))


def leave_autocommit_off():
    transaction.set_autocommit(False)
    Mark.objects.create(label="lost")


def leave_atomic_entered():
    transaction.atomic().__enter__()
    Mark.objects.create(label="lost")


def leave_raw_transaction():
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    Mark.objects.create(label="lost")


def leave_failed_statement():
    transaction.set_autocommit(False)
    Mark.objects.create(label="lost")
    try:
        connection.cursor().execute("SELECT no_such_column")
    except Exception:
        pass


def leave_other_alias():
    transaction.atomic(using="other").__enter__()


pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LEFTOVERS = [
    leave_autocommit_off,
    leave_atomic_entered,
    leave_raw_transaction,
    leave_failed_statement,
    leave_other_alias,
]


KEEPING = {
    "CONN_MAX_AGE=0": nullcontext,
    "CONN_MAX_AGE=None": partial(pointed_to, CONN_MAX_AGE=None),
    "pool": partial(pool_of, 1),
}


@pytest.fixture(params=KEEPING)
def keeping(request):
    """What becomes of a connection after its run."""
    if request.param == "pool":
        only_postgresql()
    with KEEPING[request.param]():
        yield


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize("leave", LEFTOVERS, ids=lambda leave: leave.__name__)
@pytest.mark.parametrize("kind", ["thread", "async"])
def test_an_open_transaction_left_behind_is_an_error_and_the_next_run_is_clean(job, leave, kind):
    @job("leaves", max_attempts=1)
    def leaves():
        leave()

    @job("leaves_async", max_attempts=1)
    async def leaves_async():
        await sync_to_async(leave)()

    @job("clean")
    def clean():
        Mark.objects.create(label="clean")
        return [connection.in_atomic_block, connection.get_autocommit()]

    left = (leaves if kind == "thread" else leaves_async).using(priority=9).enqueue()
    after = clean.enqueue()
    drain(concurrency=1)
    info = get_job(left.id)
    assert info.status == "dead", info
    assert "returned with" in info.last_error
    assert get_job(after.id).result == [False, True]
    assert marks() == ["clean"]


@pytest.mark.parametrize("leave", LEFTOVERS, ids=lambda leave: leave.__name__)
def test_a_handler_that_leaves_a_mess_and_raises_is_recorded_with_its_own_error(job, leave):
    @job("leaves_and_raises", max_attempts=2)
    def leaves_and_raises():
        leave()
        raise ValueError("mine")

    enqueued = leaves_and_raises.enqueue()
    drain(concurrency=1)
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, info.last_error) == ("dead", 2, "mine")
    assert marks() == []


def only_postgresql():
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no sessions")


@pytest.mark.parametrize("kind", ["thread", "async", "process"])
def test_a_connection_terminated_in_mid_run_fails_that_attempt_only(job, kind):
    only_postgresql()

    @job("terminated")
    def terminated(run: RunningJob):
        terminate_once(run)

    @job("terminated_async")
    async def terminated_async(run: RunningJob):
        await sync_to_async(terminate_once)(run)

    enqueued = {"thread": terminated, "async": terminated_async, "process": terminated_isolated}[kind].enqueue()
    drain(concurrency=1)
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, marks()) == ("succeeded", 2, ["attempt 2"])


def test_a_failed_transaction_in_the_handler_is_no_obstacle_to_recording_it(job):
    @job("dooms", max_attempts=2)
    def dooms():
        with transaction.atomic():
            Note.objects.create(text="same")
            Note.objects.create(text="same")

    enqueued = dooms.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, info.reason) == ("dead", 2, "exhausted")
    assert DeadJob.objects.get().error_type == "django.db.utils.IntegrityError"


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_sessions_that_died_between_two_runs_are_replaced(job, kind):
    """An async run keeps none for the next."""
    only_postgresql()

    @job("queries", max_attempts=1)
    def queries():
        return kept_session()

    pids = []
    with pointed_to(CONN_MAX_AGE=600, CONN_HEALTH_CHECKS=True), running_worker(concurrency=1):
        for _ in range(3):
            enqueued = queries.enqueue() if kind == "thread" else trick.enqueue(name="kept session")
            wait_for(lambda enqueued=enqueued: get_job(enqueued.id).status == "succeeded", timeout=30)
            pids.append(get_job(enqueued.id).result)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pids[-1]])
                assert cursor.fetchone() == (True,), "it was kept after its run"
    assert len(set(pids)) == 3


@pytest.mark.parametrize("kept", [0, None], ids=["CONN_MAX_AGE=0", "CONN_MAX_AGE=None"])
def test_a_connection_that_a_handler_closed_behind_djangos_back_costs_nobody_an_attempt(job, monkeypatch, kept):
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", kept)

    @job("closes", max_attempts=1)
    def closes():
        connections["default"].settings_dict.update(CONN_MAX_AGE=kept)
        Mark.objects.create(label="closes")
        connection.connection.close()

    @job("next", max_attempts=1)
    def next_one():
        Mark.objects.create(label="next")

    closes.using(priority=9).enqueue()
    next_one.enqueue()
    drain(concurrency=1)
    assert marks() == ["closes", "next"]
    assert not DeadJob.objects.exists()


def test_connections_are_closed_after_their_runs(job):
    only_postgresql()

    @job("queries")
    def queries():
        Mark.objects.count()

    @job("queries_async")
    async def queries_async():
        await Mark.objects.acount()

    queries.enqueue_many({} for _ in range(50))
    queries_async.enqueue_many({} for _ in range(50))
    with running_worker(concurrency=10) as worker:
        wait_for(lambda: not len(worker.process.held) and not queries_left())
        wait_for(lambda: sessions() <= 4, message="handler connections to be closed")
    wait_for(lambda: sessions() <= 1, message="the worker's connections to be closed")


def queries_left():
    from django_jobs.models import Job

    return Job.objects.exists()


def sessions():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return cursor.fetchone()[0]


def test_no_transaction_is_open_while_a_plain_handler_runs(job):
    @job("outside")
    def outside():
        Mark.objects.count()
        return [connection.in_atomic_block, connection.get_autocommit()]

    enqueued = outside.enqueue()
    drain()
    assert get_job(enqueued.id).result == [False, True]
