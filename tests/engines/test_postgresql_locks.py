"""One locked row stops nothing: whoever else works on many rows goes on without it."""

from contextlib import contextmanager
from datetime import timedelta
from threading import Event

import pytest
from django.db import connections, transaction
from django.utils import timezone

from django_jobs.ids import uuid7
from django_jobs.models import Job
from tests.factories import DeadJobFactory, JobFactory
from tests.waiting import wait_for

from .support import (
    another_connection,
    beside,
    claim,
    claim_one,
    finished,
    history,
    new_job,
    own_session,
    rescheduled,
    retry_lost,
    settle,
    stored,
    whereabouts,
)

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timedelta(0)


@contextmanager
def row_locked(job, table="django_jobs_job"):
    """As by somebody who edits the row in another session."""
    with another_connection() as connection:
        connection.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE", [job.id])
        yield connection.info.backend_pid
        connection.rollback()


def wait_until_somebody_waits_for_a_lock():
    with another_connection(autocommit=True) as connection:
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        wait_for(lambda: connection.execute(query).fetchone()[0], message="somebody to wait for a lock")


def test_a_locked_outcome_is_busy_and_the_next_tick_settles_it(session):
    JobFactory.create_batch(10)
    runs = claim(session)
    locked, *others = runs
    outcomes = [finished(run) for run in runs]
    with row_locked(locked):
        tick = settle(session, *outcomes)
        assert set(tick.written) == {run.id for run in others}
        assert (list(tick.busy), list(tick.lost)) == ([outcomes[0]], [])
        assert len(settle(session, *tick.busy).busy) == 1
    assert settle(session, *tick.busy).written == {locked.id: "succeeded"}
    assert whereabouts(locked.id) == ["history"]


def test_the_session_that_locks_a_row_is_named(session):
    JobFactory()
    run = claim_one(session)
    assert session.blocker(run.id) == ""
    with row_locked(run) as pid:
        assert f"pid {pid} " in session.blocker(run.id)


def test_a_lost_run_is_told_from_a_busy_one(session):
    JobFactory.create_batch(3)
    busy, lost, fine = claim(session)
    settle(session, rescheduled(lost))
    with row_locked(busy), row_locked(lost):
        tick = settle(session, *map(finished, (busy, lost, fine)))
    assert list(tick.written) == [fine.id]
    assert [outcome.job_id for outcome in tick.busy] == [busy.id]
    assert [outcome.job_id for outcome in tick.lost] == [lost.id]


def test_a_locked_ready_job_is_passed_over(session):
    first, *others = JobFactory.create_batch(5)
    with row_locked(first):
        assert [job.id for job in claim(session)] == [job.id for job in others]
    assert [job.id for job in claim(session)] == [first.id]


def test_a_locked_suspect_is_passed_over(session):
    first, second = JobFactory.create_batch(2, lost_runs=1)
    with row_locked(first):
        assert claim_one(session).id == second.id


def test_a_locked_lease_is_busy_and_the_others_are_renewed(open_session):
    session = open_session(lease=timedelta(seconds=1))
    JobFactory.create_batch(3)
    locked, *others = claim(session)
    leases = {run.id: run.token for run in (locked, *others)}
    with row_locked(locked):
        renewal = session.renew(leases)
    assert set(renewal.renewed) == {run.id for run in others}
    assert (set(renewal.busy), set(renewal.lost)) == ({locked.id}, set())


def test_progress_of_a_locked_job_is_left_out(session):
    JobFactory.create_batch(2)
    locked, other = claim(session)
    with row_locked(locked):
        session.show_progress({run.id: (run.token, 0.5) for run in (locked, other)})
    assert (stored(locked).progress, stored(other).progress) == (None, 0.5)


def test_a_locked_lapsed_lease_is_rescued_by_a_later_pass(open_session):
    locked, other = JobFactory.create_batch(2, lapsed=True)
    rescuer = open_session("rescuer", lease=NOW)
    with row_locked(locked):
        assert [outcome.job_id for outcome in rescuer.rescue(retry_lost)] == [other.id]
    assert [outcome.job_id for outcome in rescuer.rescue(retry_lost)] == [locked.id]


def test_a_locked_due_job_is_staged_by_a_later_pass_and_nobody_spins_for_it(session):
    locked, other = JobFactory.create_batch(2, due=True)
    with row_locked(locked):
        assert session.stage().staged == 1
        staging = session.stage()
        assert (staging.staged, staging.next_due) == (0, None)
    assert stored(other).status == "pending"
    assert session.stage().staged == 1


def test_a_locked_dead_job_stays_dead_and_the_others_come_back(statements, connection):
    locked, other = DeadJobFactory.create_batch(2)
    with row_locked(locked, "django_jobs_dead_job"):
        moved = statements.requeue_dead(connection, [locked.id, other.id], NOW)
    assert moved == [(other.id, "default")]
    assert whereabouts(locked.id) == ["dead"]


def test_two_rescuers_do_not_take_the_same_leases(open_session):
    JobFactory.create_batch(6, lapsed=True)
    second = []

    def judge(lease):
        if not second:
            with own_session("second", lease=NOW) as rescuer:
                second.append(list(rescuer.rescue(retry_lost)))
        return retry_lost(lease)

    assert len(open_session("first", lease=NOW).rescue(judge)) == 6
    assert second == [[]]


# What is not committed


def test_nobody_claims_a_job_before_its_transaction_commits(statements, connection, session):
    with transaction.atomic():
        statements.enqueue(connection, new_job())
        assert claim(session) == []
    assert len(claim(session)) == 1


@pytest.mark.parametrize("commits", [True, False])
def test_a_key_in_an_open_transaction_is_waited_for(statements, connection, commits):
    """If the first one rolls back, the second one gets it."""
    first, second = (new_job(key="k", payload_hash=b"h") for _ in range(2))
    written, placed = Event(), []

    def enqueue_second():
        written.wait(20)
        placed.append(statements.enqueue(connections["default"], second))

    with beside(enqueue_second), transaction.atomic():
        statements.enqueue(connection, first)
        written.set()
        wait_until_somebody_waits_for_a_lock()
        transaction.set_rollback(not commits)
    assert (placed[0] is None) is commits
    assert list(Job.objects.values_list("id", flat=True)) == [(first if commits else second).id]


def test_a_completion_waits_for_the_one_row_it_needs(statements, connection, session):
    """A cancellation or a renewal in flight ends soon; a success stays one."""
    JobFactory()
    run = claim_one(session)
    asked = Event()

    def ask_to_cancel():
        with transaction.atomic():
            Job.objects.filter(id=run.id).update(cancel_requested_at=timezone.now())
            asked.set()
            wait_until_somebody_waits_for_a_lock()

    with beside(ask_to_cancel):
        asked.wait(20)
        with transaction.atomic():
            statements.begin_run(connection)
            assert statements.complete_within(
                connection, run.id, run.token, history_id=uuid7(), duration_ms=0, result=None, metrics=None
            )
    assert history(run).status == "succeeded"


def test_a_completion_sees_that_the_lease_was_taken_while_it_waited(statements, connection, session):
    JobFactory()
    run = claim_one(session)
    taken = Event()

    def take_the_lease():
        with transaction.atomic():
            Job.objects.filter(id=run.id).update(lease_token=run.token + 1)
            taken.set()
            wait_until_somebody_waits_for_a_lock()

    with beside(take_the_lease):
        taken.wait(20)
        with transaction.atomic():
            statements.begin_run(connection)
            assert not statements.complete_within(
                connection, run.id, run.token, history_id=uuid7(), duration_ms=0, result=None, metrics=None
            )
    assert whereabouts(run.id) == ["jobs"]


def test_a_lease_whose_row_is_locked_is_renewed_as_soon_as_the_lock_is_gone(session):
    JobFactory()
    run = claim_one(session)
    Job.objects.filter(pk=run.id).update(locked_until=timezone.now() - timedelta(seconds=1))
    renewals = []
    locked, let_go = Event(), Event()

    def lock():
        with row_locked(run):
            locked.set()
            let_go.wait(20)

    with beside(lock):
        locked.wait(20)
        with beside(lambda: renewals.append(session.renew({run.id: run.token}))):
            wait_until_somebody_waits_for_a_lock()
            let_go.set()
    (renewal,) = renewals
    assert (set(renewal.renewed), set(renewal.busy), set(renewal.lost)) == ({run.id}, set(), set())
    assert stored(run).locked_until > timezone.now()


def test_a_lease_whose_row_stays_locked_is_busy_and_not_lost(open_session):
    session = open_session(lease=timedelta(seconds=0.3))
    JobFactory()
    run = claim_one(session)
    with row_locked(run):
        renewal = session.renew({run.id: run.token})
    assert (set(renewal.renewed), set(renewal.busy), set(renewal.lost)) == (set(), {run.id}, set())
