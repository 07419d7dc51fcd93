import json
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobs.ids import uuid7
from django_jobs.models import DeadJob, Job
from tests.factories import DeadJobFactory

from .support import claim, claim_one, finished, new_job, settle, stored, whereabouts

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timedelta(0)


def test_a_dead_job_comes_back_with_fresh_attempts_and_its_past(statements, connection, session):
    dead = DeadJobFactory(
        payload={"n": 1.5, "text": "ü\\"},
        priority=3,
        tenant="acme",
        idempotency_key="k",
        context={"a": 1},
        lost_runs=2,
        untaken_since=timezone.now(),
        progress={"done": 1},
        errors=[{"attempt": 1}],
    )
    dead.refresh_from_db()
    assert statements.requeue_dead(connection, [dead.id], NOW) == [(dead.id, "default")]
    row = stored(dead)
    kept = ("queue", "type", "payload", "priority", "tenant", "idempotency_key", "context", "max_attempts")
    kept += ("created_at", "errors", "last_error")
    assert {name: getattr(row, name) for name in kept} == {name: getattr(dead, name) for name in kept}
    assert (row.status, row.attempts, row.lost_runs, row.untaken_since) == ("pending", 0, 0, None)
    assert (row.progress, row.lease_token, row.cancel_requested_at) == (None, None, None)
    assert whereabouts(dead.id) == ["jobs"]
    run = claim_one(session)
    assert (run.attempt, json.loads(run.payload)) == (1, dead.payload)
    settle(session, finished(run))
    assert whereabouts(dead.id) == ["history"]


def test_it_can_come_back_later(statements, connection, session):
    dead = DeadJobFactory()
    statements.requeue_dead(connection, [dead.id], timedelta(hours=1))
    row = stored(dead)
    assert row.status == "scheduled"
    assert abs(row.run_at - timezone.now() - timedelta(hours=1)) < timedelta(seconds=10)
    assert claim(session) == []


def test_it_stands_behind_the_jobs_that_were_ready_before(statements, connection, session):
    before, after = new_job(), new_job()
    dead = DeadJobFactory()
    statements.enqueue(connection, before)
    statements.requeue_dead(connection, [dead.id], NOW)
    statements.enqueue(connection, after)
    assert [job.id for job in claim(session)] == [before.id, dead.id, after.id]


def test_only_dead_jobs_come_back(statements, connection):
    dead = DeadJobFactory()
    assert statements.requeue_dead(connection, [uuid7(), dead.id, uuid7()], NOW) == [(dead.id, "default")]
    assert statements.requeue_dead(connection, [dead.id], NOW) == []
    assert Job.objects.count() == 1


def test_none_come_back_for_no_ids(statements, connection):
    assert statements.requeue_dead(connection, [], NOW) == []


def test_many_come_back_at_once(statements, connection):
    dead = DeadJobFactory.create_many(1100)
    moved = statements.requeue_dead(connection, [job.id for job in dead], NOW)
    assert {job_id for job_id, _ in moved} == {job.id for job in dead}
    assert (Job.objects.count(), DeadJob.objects.count()) == (1100, 0)


def test_a_job_is_in_one_table_whether_the_transaction_commits_or_not(statements, connection):
    dead = DeadJobFactory()
    with transaction.atomic():
        statements.requeue_dead(connection, [dead.id], NOW)
        transaction.set_rollback(True)
    assert whereabouts(dead.id) == ["dead"]
