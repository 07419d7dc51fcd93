from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from django_jobs.engines.values import ClaimRequest
from django_jobs.failure import Failure
from django_jobs.ids import uuid7
from django_jobs.models import DeadJob, Job, JobHistory
from django_jobs.outcomes import Finished
from tests.factories import JobFactory
from tests.uuid7 import instant_of

from .support import (
    FAILURE,
    buried,
    claim,
    claim_one,
    dead,
    finished,
    history,
    let_time_pass,
    rescheduled,
    retry_lost,
    settle,
    stored,
    whereabouts,
)

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)
SOON = timedelta(seconds=10)


def is_now(instant, give=SOON):
    return abs(instant - timezone.now()) < give


def test_a_success_becomes_one_history_row(open_session):
    job = JobFactory(type="invoice", tenant="acme", attempts=1)
    session = open_session("w-17")
    claimed = claim_one(session)
    outcome = finished(claimed, duration_ms=1500, result={"pages": [1, 2]}, metrics={"rows_processed": 7})
    assert settle(session, outcome).written == {job.id: "succeeded"}
    row = history(job)
    assert (row.type, row.queue, row.tenant, row.status) == ("invoice", "default", "acme", "succeeded")
    assert (row.attempts, row.worker, row.duration_ms) == (2, "w-17", 1500)
    assert (row.result, row.metrics, row.errors) == ({"pages": [1, 2]}, {"rows_processed": 7}, [])
    assert row.enqueued_at == job.created_at or is_now(row.enqueued_at)
    assert is_now(row.finished_at)
    assert row.finished_at - row.started_at == timedelta(milliseconds=1500)
    assert whereabouts(job.id) == ["history"]


def test_nothing_returned_is_stored_as_null(session):
    JobFactory()
    claimed = claim_one(session)
    settle(session, finished(claimed))
    assert JobHistory.objects.filter(job_id=claimed.id, result__isnull=True, metrics__isnull=True).exists()


def test_the_id_of_a_history_row_carries_the_time_of_the_finish(session):
    JobFactory()
    claimed = claim_one(session)
    settle(session, finished(claimed))
    row = history(claimed)
    assert abs(instant_of(row.id) - row.finished_at) < timedelta(seconds=1)


def test_of_two_outcomes_of_one_lease_the_first_is_written_once(session):
    JobFactory()
    claimed = claim_one(session)
    tick = settle(session, finished(claimed, result=1), finished(claimed, result=2), buried(claimed))
    assert tick.written == {claimed.id: "succeeded"}
    assert history(claimed).result == 1
    assert whereabouts(claimed.id) == ["history"]


def test_a_run_that_cancelled_itself_is_history_with_its_reason(session):
    JobFactory()
    claimed = claim_one(session)
    outcome = finished(claimed, status="cancelled", failure=FAILURE)
    assert settle(session, outcome).written == {claimed.id: "cancelled"}
    row = history(claimed)
    assert row.status == "cancelled"
    assert [error["message"] for error in row.errors] == [FAILURE.message]


def test_earlier_errors_stay_with_a_job_that_succeeds_in_the_end(session):
    JobFactory(errors=[{"message": "first"}])
    claimed = claim_one(session)
    settle(session, finished(claimed))
    assert history(claimed).errors == [{"message": "first"}]


def test_a_retry_is_scheduled_after_its_delay_and_holds_no_lease(open_session):
    session = open_session("w-17")
    job = JobFactory(last_error="older")
    claimed = claim_one(session)
    outcome = rescheduled(claimed, MINUTE, failure=FAILURE, duration_ms=20)
    assert settle(session, outcome).written == {job.id: None}
    row = stored(job)
    assert (row.status, row.attempts, row.lost_runs) == ("scheduled", 1, 0)
    assert (row.locked_by, row.locked_until, row.lease_token) == ("", None, None)
    assert is_now(row.run_at - MINUTE)
    assert row.last_error == "no such invoice"
    (error,) = row.errors
    assert is_now(datetime.fromisoformat(error.pop("at")).astimezone(UTC))
    assert error == {
        "attempt": 1,
        "type": "ValueError",
        "message": FAILURE.message,
        "traceback": FAILURE.traceback,
        "worker": "w-17",
        "duration_ms": 20,
    }


def test_a_snooze_refunds_the_attempt_and_leaves_the_errors_alone(session):
    job = JobFactory(last_error="older", errors=[{"message": "older"}], attempts=2)
    settle(session, rescheduled(claim_one(session), MINUTE, why="snoozed"))
    row = stored(job)
    assert (row.status, row.attempts, row.last_error) == ("scheduled", 2, "older")
    assert row.errors == [{"message": "older"}]


def test_a_refund_never_goes_below_zero(session):
    job = JobFactory()
    claimed = claim_one(session)
    Job.objects.filter(id=job.id).update(attempts=0)
    settle(session, rescheduled(claimed, why="snoozed"))
    assert stored(job).attempts == 0


@pytest.mark.parametrize(
    ("why", "attempts", "lost_runs"),
    [("failed", 3, 1), ("lost", 3, 2), ("snoozed", 2, 1), ("handed_back", 2, 1), ("untaken", 2, 1)],
)
def test_what_a_rescheduling_costs_depends_on_its_reason(session, why, attempts, lost_runs):
    job = JobFactory(attempts=2, lost_runs=1)
    settle(session, rescheduled(claim_one(session), why=why))
    assert (stored(job).attempts, stored(job).lost_runs) == (attempts, lost_runs)


def test_a_rescheduled_job_is_ready_again_once_staged(session):
    JobFactory()
    settle(session, rescheduled(claim_one(session), why="snoozed"))
    assert claim(session) == []
    assert session.stage().staged == 1
    assert claim_one(session).attempt == 1


def test_a_lost_run_makes_the_job_a_suspect(session):
    job = JobFactory()
    settle(session, rescheduled(claim_one(session), why="lost"))
    session.stage()
    claimed = claim_one(session)
    assert (claimed.id, claimed.lost_runs, claimed.attempt) == (job.id, 1, 2)


def test_the_first_time_that_nobody_could_take_a_job_is_kept(session):
    long_ago = timezone.now() - timedelta(hours=3)
    fresh, known = JobFactory(), JobFactory(untaken_since=long_ago)
    settle(session, *(rescheduled(job, why="untaken") for job in claim(session)))
    assert is_now(stored(fresh).untaken_since)
    assert stored(known).untaken_since == long_ago


@pytest.mark.parametrize("why", ["failed", "snoozed", "lost"])
def test_that_time_is_forgotten_once_somebody_took_the_job(session, why):
    job = JobFactory(untaken_since=timezone.now())
    settle(session, rescheduled(claim_one(session), failure=FAILURE, why=why))
    assert stored(job).untaken_since is None


def test_that_time_is_not_forgotten_by_a_worker_that_gave_the_job_back_unseen(session):
    long_ago = timezone.now() - timedelta(hours=3)
    job = JobFactory(untaken_since=long_ago)
    settle(session, rescheduled(claim_one(session), why="handed_back"))
    assert stored(job).untaken_since == long_ago


@pytest.mark.parametrize(("reason", "lost_runs"), [("worker_lost", 2), ("exhausted", 1)])
def test_a_burial_of_a_lost_run_counts_it(session, reason, lost_runs):
    job = JobFactory(lost_runs=1)
    settle(session, buried(claim_one(session), reason=reason))
    assert dead(job).lost_runs == lost_runs


def test_a_buried_job_is_dead_with_all_it_had(session):
    job = JobFactory(
        type="invoice",
        queue="default",
        payload={"n": 1.5, "text": "ü\\"},
        priority=3,
        tenant="acme",
        idempotency_key="k",
        context={"request_id": "r"},
        attempts=4,
        lost_runs=0,
        progress={"done": 0.5},
        errors=[{"message": "earlier"}],
        run_at=timezone.now() - MINUTE,
    )
    job.refresh_from_db()
    claimed = claim_one(session)
    assert settle(session, buried(claimed, reason="timeout", duration_ms=9)).written == {job.id: "dead"}
    row = dead(job)
    kept = ("type", "queue", "payload", "priority", "tenant", "idempotency_key", "context", "max_attempts")
    kept += ("created_at", "run_at", "progress", "lost_runs", "untaken_since")
    assert {name: getattr(row, name) for name in kept} == {name: getattr(job, name) for name in kept}
    assert (row.attempts, row.reason, row.fingerprint) == (5, "timeout", "1:0123456789abcdef")
    assert (row.error_type, row.error_summary, row.last_error) == (
        "ValueError",
        "no such invoice",
        FAILURE.message,
    )
    assert [error["message"] for error in row.errors] == ["earlier", FAILURE.message]
    assert is_now(row.failed_at)
    assert whereabouts(job.id) == ["dead"]


def test_of_many_errors_the_first_two_and_the_last_eight_are_kept(session):
    job = JobFactory(max_attempts=100)
    for number in range(1, 14):
        failure = Failure.of("ValueError", f"failure {number}")
        settle(session, rescheduled(claim_one(session), failure=failure))
        session.stage()
    row = stored(job)
    assert [error["attempt"] for error in row.errors] == [1, 2, 6, 7, 8, 9, 10, 11, 12, 13]
    assert row.errors[-1]["message"] == row.last_error == "failure 13"


def test_the_same_rule_holds_for_history_and_dead_jobs(session):
    errors = [{"attempt": n} for n in range(1, 11)]
    JobFactory.create_batch(2, errors=errors, attempts=10)
    first, second = claim(session)
    settle(session, buried(first), finished(second, status="cancelled", failure=FAILURE))
    for row in (dead(first), history(second)):
        assert [error["attempt"] for error in row.errors] == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]


def test_settling_and_claiming_go_together_in_a_tick(session):
    JobFactory.create_batch(2)
    first, second = claim(session)
    JobFactory.create_batch(3)
    outcomes = [finished(first), rescheduled(second)]
    tick = session.tick(outcomes, [ClaimRequest(queues=("default",), limit=10)])
    assert tick.written == {first.id: "succeeded", second.id: None}
    assert len(tick.jobs[0]) == 3, "what is rescheduled must be staged first"


def test_hundreds_of_outcomes_of_all_kinds_are_settled_at_once(session):
    JobFactory.create_many(600)
    jobs = claim(session, limit=600)
    outcomes = [(finished, rescheduled, buried)[n % 3](job) for n, job in enumerate(jobs)]
    tick = settle(session, *outcomes)
    assert list(tick.written.values()).count("succeeded") == 200
    assert not [*tick.busy, *tick.lost]
    assert (JobHistory.objects.count(), Job.objects.count(), DeadJob.objects.count()) == (200, 200, 200)


# Fencing


def lease_taken_by_another(open_session):
    """A run whose lease ran out, and the one that has the job now."""
    JobFactory()
    old = claim_one(open_session("old"))
    let_time_pass(timedelta(hours=1))
    rescuer = open_session("rescuer", lease=timedelta(0))
    assert len(rescuer.rescue(retry_lost)) == 1
    rescuer.stage()
    return old, claim_one(open_session("new"))


@pytest.mark.parametrize("ending", [finished, rescheduled, buried])
def test_a_run_that_lost_its_lease_changes_nothing(open_session, session, ending):
    old, new = lease_taken_by_another(open_session)
    before = Job.objects.filter(id=old.id).values().get()
    tick = settle(session, ending(old))
    assert not [*tick.written, *tick.busy]
    assert len(tick.lost) == 1
    assert Job.objects.filter(id=old.id).values().get() == before
    assert settle(session, finished(new, result="new")).written == {new.id: "succeeded"}
    assert history(new).result == "new"


def test_a_run_whose_job_is_over_changes_nothing(open_session, session):
    old, new = lease_taken_by_another(open_session)
    settle(session, finished(new, result="new"))
    stale = buried(old)
    assert settle(session, stale).lost == [stale]
    assert whereabouts(old.id) == ["history"]
    assert history(old).result == "new"


def test_a_run_whose_job_was_given_back_changes_nothing(session):
    JobFactory()
    claimed = claim_one(session)
    settle(session, rescheduled(claimed, why="handed_back"))
    assert len(settle(session, finished(claimed)).lost) == 1
    assert stored(claimed).status == "scheduled"


def test_one_lost_lease_does_not_keep_the_other_outcomes_from_being_written(open_session, session):
    old, new = lease_taken_by_another(open_session)
    JobFactory.create_batch(3)
    others = claim(session)
    tick = settle(session, *map(finished, others), finished(old))
    assert tick.written == {job.id: "succeeded" for job in others}
    assert [outcome.job_id for outcome in tick.lost] == [old.id]
    assert stored(new).status == "processing"


def test_of_two_runs_of_a_job_in_one_tick_the_one_with_the_lease_counts(open_session, session):
    old, new = lease_taken_by_another(open_session)
    stale, valid = finished(old, result="old"), finished(new, result="new")
    tick = settle(session, stale, valid)
    assert tick.written == {new.id: "succeeded"}
    assert tick.lost == [stale]
    assert history(new).result == "new"


def test_a_token_of_another_job_does_not_open_this_one(session):
    JobFactory.create_batch(2)
    first, second = claim(session)
    crossed = [
        Finished(job_id=first.id, token=second.token),
        Finished(job_id=second.id, token=first.token),
    ]
    assert settle(session, *crossed).lost == crossed
    assert Job.objects.filter(status="processing").count() == 2


def test_an_outcome_of_an_unknown_job_is_lost(session):
    outcome = Finished(job_id=uuid7(), token=1)
    assert settle(session, outcome).lost == [outcome]
