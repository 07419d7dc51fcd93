"""A run whose cancellation was asked for while it ran: success stays success, anything else ends it as cancelled."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobs.ids import uuid7
from django_jobs.models import Job
from tests.factories import JobFactory

from .support import (
    FAILURE,
    buried,
    claim,
    claim_one,
    finished,
    history,
    let_time_pass,
    rescheduled,
    retry_lost,
    settle,
    whereabouts,
)

pytestmark = pytest.mark.django_db(transaction=True)

ENDINGS = {
    "success": lambda job: finished(job, result="done"),
    "cancelled by the handler": lambda job: finished(job, status="cancelled"),
    "error": lambda job: rescheduled(job, timedelta(minutes=1), failure=FAILURE),
    "retry": lambda job: rescheduled(job, timedelta(hours=1)),
    "snooze": lambda job: rescheduled(job, timedelta(hours=1), why="snoozed"),
    "release": lambda job: rescheduled(job, why="handed_back"),
    "lost": lambda job: rescheduled(job, failure=FAILURE, why="lost"),
    "untaken": lambda job: rescheduled(job, why="untaken"),
    "bury": buried,
}


@pytest.fixture
def run(session):
    JobFactory()
    claimed = claim_one(session)
    ask_to_cancel(claimed)
    return claimed


def ask_to_cancel(*jobs):
    Job.objects.filter(id__in=[job.id for job in jobs]).update(cancel_requested_at=timezone.now())


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_as_cancelled_unless_it_succeeded(session, run, ending):
    expected = "succeeded" if ending == "success" else "cancelled"
    assert settle(session, ENDINGS[ending](run)).written == {run.id: expected}
    row = history(run)
    assert (row.status, row.attempts) == (expected, 1)
    assert row.result == ("done" if ending == "success" else None)
    assert whereabouts(run.id) == ["history"]


@pytest.mark.parametrize("ending", ["error", "lost", "bury"])
def test_what_went_wrong_is_kept(session, run, ending):
    settle(session, ENDINGS[ending](run))
    (error,) = history(run).errors
    assert (error["message"], error["attempt"]) == (FAILURE.message, 1)


def test_all_the_endings_can_meet_in_one_tick(session):
    JobFactory.create_batch(2 * len(ENDINGS))
    jobs = claim(session, limit=100)
    asked, others = jobs[: len(ENDINGS)], jobs[len(ENDINGS) :]
    ask_to_cancel(*asked)
    outcomes = [make(job) for some in (asked, others) for make, job in zip(ENDINGS.values(), some, strict=True)]
    written = settle(session, *outcomes).written
    assert [written[job.id] for job in asked] == ["succeeded"] + ["cancelled"] * 8
    assert [written[job.id] for job in others] == ["succeeded", "cancelled", *[None] * 6, "dead"]


def test_a_run_that_was_lost_is_not_started_again(open_session, run):
    let_time_pass(timedelta(hours=1))
    (outcome,) = open_session("rescuer", lease=timedelta(0)).rescue(retry_lost)
    assert outcome.job_id == run.id
    assert history(run).status == "cancelled"
    assert whereabouts(run.id) == ["history"]


def test_a_run_that_completes_in_its_own_transaction_has_succeeded(statements, connection, run):
    with transaction.atomic():
        assert statements.complete_within(
            connection, run.id, run.token, history_id=uuid7(), duration_ms=1, result=None, metrics=None
        )
    assert history(run).status == "succeeded"


def test_a_renewal_tells_of_the_wish(session, run):
    JobFactory()
    other = claim_one(session)
    renewal = session.renew({run.id: run.token, other.id: other.token})
    assert set(renewal.renewed) == {run.id, other.id}
    assert set(renewal.cancelled) == {run.id}
