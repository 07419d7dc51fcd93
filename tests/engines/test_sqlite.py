"""What only the portable engine has: one writer at a time, and a connection that stands in for Django's."""

import gc
import sqlite3
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import OperationalError, connections, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from django_jobs import clock
from django_jobs.engines.portable import connecting, ready_order
from django_jobs.engines.portable import session as portable_session
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.engines.values import ClaimRequest
from django_jobs.ids import uuid7
from django_jobs.models import Job
from tests.factories import JobFactory

from .support import (
    claim,
    claim_one,
    finished,
    new_job,
    rescheduled,
    retry_lost,
    settle,
    whereabouts,
    write_lock_held,
)

pytestmark = pytest.mark.django_db(transaction=True)

REQUEST = ClaimRequest(queues=("default",), limit=10)


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    monkeypatch.setattr(connecting, "LOCK_TIMEOUT", 0.02)


def plan(rows):
    with connections["default"].cursor() as cursor:
        sql, parameters = rows.query.sql_with_params()
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        return " | ".join(row[-1] for row in cursor.fetchall())


# Locks


def test_a_locked_database_is_trouble_that_passes(session):
    JobFactory.create_batch(2)
    run = claim_one(session)
    outcome = finished(run)
    with write_lock_held():
        for call in (
            lambda: session.tick([outcome], [REQUEST]),
            lambda: claim(session),
            lambda: session.renew({run.id: run.token}),
            lambda: session.show_progress({run.id: (run.token, 1)}),
        ):
            with pytest.raises(EngineUnavailable, match="locked"):
                call()
    assert settle(session, outcome).written == {run.id: "succeeded"}
    assert len(claim(session)) == 1


def open_cursors():
    return sum(issubclass(type(found), sqlite3.Cursor) for found in gc.get_objects())


def test_a_call_that_met_a_lock_leaves_no_cursor_to_the_garbage_collector(session):
    """It would reset the cursor in any thread, also in the one that holds the lock, and wait there for ours."""
    JobFactory()
    run = claim_one(session)
    gc.collect()
    gc.disable()
    try:
        before = open_cursors()
        with write_lock_held():
            for call in (lambda: session.tick([finished(run)], [REQUEST]), lambda: session.renew({run.id: run.token})):
                try:
                    call()
                except EngineUnavailable:
                    pass
                else:
                    pytest.fail("there was no lock")
            assert open_cursors() == before
    finally:
        gc.enable()


def test_a_claim_that_met_a_lock_after_settling_leaves_no_cursor_either(session, monkeypatch, caplog):
    JobFactory.create_batch(2)
    run = claim_one(session)
    real, holders = portable_session.settle, ExitStack()

    def settle_and_lose_the_lock(*arguments):
        written = real(*arguments)
        transaction.on_commit(lambda: holders.enter_context(write_lock_held()))
        return written

    monkeypatch.setattr(portable_session, "settle", settle_and_lose_the_lock)
    gc.collect()
    gc.disable()
    try:
        before = open_cursors()
        with holders:
            tick = session.tick([finished(run)], [REQUEST])
            assert open_cursors() == before
    finally:
        gc.enable()
    assert (tick.written, tick.jobs) == ({run.id: "succeeded"}, [[]])
    assert "Claiming failed: database is locked" in caplog.text


def test_an_idle_worker_does_not_wait_for_the_lock(session):
    assert claim(session) == []
    with write_lock_held():
        assert claim(session) == []
        assert session.outstanding(["default"], timedelta(0)) is False
        assert session.stage().next_due is None
        assert session.my_leases() == {}
        assert list(session.rescue(retry_lost)) == []


def test_enqueueing_and_completing_write_before_they_read(statements, connection, session):
    """In a deferred transaction a read would fix a snapshot, and a stale one fails instead of waiting."""
    JobFactory()
    run = claim_one(session)
    with CaptureQueriesContext(connection) as enqueueing, transaction.atomic():
        statements.enqueue(connection, new_job(key="k", payload_hash=b"h"))
    with CaptureQueriesContext(connection) as completing, transaction.atomic():
        values = {"history_id": uuid7(), "duration_ms": 0, "result": None, "metrics": None}
        statements.complete_within(connection, run.id, run.token, **values)
    assert "INSERT OR IGNORE INTO" in enqueueing[1]["sql"]
    assert "UPDATE" in completing[1]["sql"]


def test_a_claim_that_fails_does_not_undo_outcomes(session, monkeypatch):
    JobFactory.create_batch(2)
    first = claim_one(session)

    def fail(*_):
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(portable_session, "claim", fail)
    tick = session.tick([finished(first)], [REQUEST, REQUEST])
    assert tick.written == {first.id: "succeeded"}
    assert list(tick.jobs) == [[], []]
    assert whereabouts(first.id) == ["history"]
    with pytest.raises(EngineUnavailable, match="disk"):
        session.tick([], [REQUEST])


# The connection


def test_every_transaction_of_the_session_is_immediate(session):
    claim(session)
    own = session._connection
    assert own.transaction_mode == "IMMEDIATE"
    assert own is not connections["default"]
    assert own.settings_dict["NAME"] == connections["default"].settings_dict["NAME"]


def test_the_threads_own_connection_is_back_after_each_call(session):
    usual = connections["default"]
    JobFactory()
    claim(session)
    assert connections["default"] is usual
    with write_lock_held(), pytest.raises(EngineUnavailable):
        session.renew({})
    assert connections["default"] is usual


def test_two_sessions_can_share_a_thread(open_session):
    first, second = open_session("w-1"), open_session("w-2")
    JobFactory.create_batch(2)
    runs = [claim_one(first), claim_one(second)]
    first.close()
    assert len(settle(second, *map(finished, runs)).written) == 2


def test_inside_a_transaction_of_the_thread_a_session_says_why_it_cannot_work(session):
    with transaction.atomic(), pytest.raises(TransactionManagementError, match="TransactionTestCase"):
        claim(session)
    assert claim(session) == []


def test_a_closed_session_connects_anew(session):
    JobFactory()
    run = claim_one(session)
    session.close()
    session.close()
    assert settle(session, finished(run)).written == {run.id: "succeeded"}


def test_a_connection_that_broke_is_replaced(session):
    JobFactory()
    claim(session)
    session._connection.connection.close()
    with pytest.raises(EngineUnavailable):
        session.stage()
    assert session.stage().staged == 0


# Waking


def test_a_commit_of_somebody_else_is_noticed_once(session):
    claim(session)
    assert session.take_notification() is False
    JobFactory()
    assert session.take_notification() is True
    assert session.take_notification() is False


def test_what_was_committed_before_the_last_look_is_not_news(session):
    JobFactory()
    claim(session)
    assert session.take_notification() is False


def test_what_the_session_wrote_itself_is_not_news(session):
    JobFactory()
    run = claim_one(session)
    settle(session, rescheduled(run))
    session.stage()
    assert session.take_notification() is False


def test_there_is_nothing_to_listen_to(session):
    assert session.can_listen() is False
    assert session.lie_down(["default"]) is False
    assert session.fileno() is None
    assert session.unfinished_writers() == frozenset()
    assert session.peek_every < timedelta(seconds=1)


# Order and plans


def test_places_grow_even_when_the_clock_stands_still_or_goes_back(monkeypatch):
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    first = list(ready_order.take_places(3))
    monkeypatch.setattr(clock, "now", lambda: now - timedelta(days=1))
    second = list(ready_order.take_places(2))
    assert second[0] > first[-1]
    assert first[1] == first[0] + 1
    assert list(ready_order.take_places(0)) == []


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        (
            Job.objects.filter(queue="default", status="pending", lost_runs=0).order_by(
                "-priority", "ready_xid", "ready_seq"
            ),
            "django_jobs_job_claim",
        ),
        (
            Job.objects.filter(queue="default", status="pending", lost_runs__gt=0).order_by(
                "-priority", "ready_xid", "ready_seq"
            ),
            "django_jobs_job_suspect",
        ),
        (
            Job.objects.filter(status="scheduled", queue="default", priority=0).order_by("run_at"),
            "django_jobs_job_due",
        ),
        (
            Job.objects.filter(status="scheduled").order_by("queue", "-priority", "run_at"),
            "django_jobs_job_due",
        ),
        (
            Job.objects.filter(status="processing", locked_until__lt="2026-01-01T00:00Z").order_by("locked_until"),
            "django_jobs_job_lease",
        ),
    ],
)
def test_each_query_reads_its_index_in_order(rows, index):
    found = plan(rows[:10])
    assert index in found
    assert "TEMP B-TREE" not in found
