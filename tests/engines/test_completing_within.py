"""``atomic=True``: the handler's writes and the job's completion commit together, or neither does."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobs.ids import uuid7
from django_jobs.models import Job, JobHistory
from tests.app.models import Note
from tests.factories import JobFactory

from .support import (
    claim_one,
    finished,
    history,
    let_time_pass,
    retry_lost,
    settle,
    stored,
    whereabouts,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def complete(statements, connection):
    def complete(run, **values):
        defaults = {"history_id": uuid7(), "duration_ms": 1500, "result": None, "metrics": None}
        return statements.complete_within(connection, run.id, run.token, **defaults | values)

    return complete


def test_the_job_is_over_when_the_handlers_transaction_commits(statements, connection, open_session, complete):
    job = JobFactory(type="invoice", tenant="acme", errors=[{"message": "earlier"}])
    run = claim_one(open_session("w-17"))
    history_id = uuid7()
    with transaction.atomic():
        statements.begin_run(connection)
        Note.objects.create(text="written")
        assert complete(run, history_id=history_id, result={"n": 1}, metrics={"rows": 2}) is True
    row = history(job)
    assert (row.id, row.status, row.type, row.queue, row.tenant) == (
        history_id,
        "succeeded",
        "invoice",
        "default",
        "acme",
    )
    assert (row.attempts, row.worker, row.duration_ms) == (1, "w-17", 1500)
    assert (row.result, row.metrics, row.errors) == ({"n": 1}, {"rows": 2}, [{"message": "earlier"}])
    assert abs(row.finished_at - timezone.now()) < timedelta(seconds=10)
    assert row.finished_at - row.started_at == timedelta(milliseconds=1500)
    assert whereabouts(job.id) == ["history"]
    assert Note.objects.count() == 1


def test_nothing_returned_is_stored_as_null(session, complete):
    JobFactory()
    run = claim_one(session)
    with transaction.atomic():
        complete(run)
    assert JobHistory.objects.filter(result__isnull=True, metrics__isnull=True).count() == 1


def test_a_transaction_that_does_not_commit_leaves_the_job_leased(session, complete):
    JobFactory()
    run = claim_one(session)
    with transaction.atomic():
        Note.objects.create(text="gone")
        assert complete(run)
        transaction.set_rollback(True)
    assert stored(run).lease_token == run.token
    assert not Note.objects.exists()
    assert settle(session, finished(run)).written == {run.id: "succeeded"}


@pytest.mark.parametrize("taken", [False, True])
def test_a_run_that_lost_its_lease_cannot_complete(open_session, session, complete, taken):
    job = JobFactory()
    old = claim_one(session)
    let_time_pass(timedelta(hours=1))
    rescuer = open_session("rescuer", lease=timedelta(0))
    rescuer.rescue(retry_lost)
    if taken:
        rescuer.stage()
        claim_one(open_session("other"))
    before = Job.objects.filter(id=job.id).values().get()
    with transaction.atomic():
        Note.objects.create(text="does not count")
        assert complete(old) is False
        transaction.set_rollback(True)
    assert not Note.objects.exists()
    assert Job.objects.filter(id=job.id).values().get() == before
    assert not JobHistory.objects.exists()


def test_a_lease_that_ran_out_but_was_not_taken_still_counts(session, complete):
    JobFactory()
    run = claim_one(session)
    let_time_pass(timedelta(hours=1))
    with transaction.atomic():
        assert complete(run) is True


def test_a_job_cannot_complete_twice(session, complete):
    JobFactory()
    run = claim_one(session)
    with transaction.atomic():
        assert complete(run) is True
        assert complete(run) is False
    with transaction.atomic():
        assert complete(run) is False
    assert JobHistory.objects.count() == 1


def test_afterwards_the_lease_is_gone_for_everybody(session, complete):
    JobFactory()
    run = claim_one(session)
    with transaction.atomic():
        complete(run)
    assert set(session.renew({run.id: run.token}).lost) == {run.id}
    assert len(settle(session, finished(run)).lost) == 1


def test_other_jobs_of_the_process_are_not_touched(session, complete):
    JobFactory()
    run = claim_one(session)
    JobFactory()
    other = claim_one(session)
    with transaction.atomic():
        complete(run)
    assert stored(other).lease_token == other.token
