from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs import clock
from django_jobs.engines.protocol import MAX_RESCUED
from django_jobs.models import Job, Worker
from tests.factories import JobFactory, WorkerFactory
from tests.operations.support import on_postgresql
from tests.uuid7 import instant_of

from .support import (
    FAILURE,
    VENDOR,
    buried,
    claim,
    claim_one,
    dead,
    finished,
    history,
    in_threads,
    let_time_pass,
    own_session,
    retry_lost,
    settle,
    stored,
    whereabouts,
)

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


@pytest.fixture
def rescuer(open_session):
    """Needs no grace."""
    return open_session("rescuer", lease=timedelta(0))


def bury_lost(lease):
    class Job:
        id, token = lease.job_id, lease.token

    return buried(Job, reason="worker_lost")


def test_a_lapsed_lease_is_judged_by_what_stands_in_its_row(rescuer):
    job = JobFactory(lapsed=True, type="of another build", attempts=3, max_attempts=9, locked_by="w-17")
    seen = []

    def judge(lease):
        seen.append(lease)
        return retry_lost(lease)

    (outcome,) = rescuer.rescue(judge)
    (lease,) = seen
    assert (lease.job_id, lease.token, lease.type) == (job.id, job.lease_token, "of another build")
    assert lease.queue == "default"
    assert (lease.attempt, lease.max_attempts, lease.worker) == (3, 9, "w-17")
    assert outcome == retry_lost(lease)


def test_a_lost_run_is_a_retry_and_makes_the_job_a_suspect(rescuer):
    job = JobFactory(lapsed=True)
    rescuer.rescue(retry_lost)
    row = stored(job)
    assert (row.status, row.attempts, row.lost_runs) == ("scheduled", 1, 1)
    assert (row.locked_by, row.locked_until, row.lease_token) == ("", None, None)
    assert [error["message"] for error in row.errors] == [FAILURE.message]


def test_a_rescuing_session_knows_the_databases_time(rescuer, monkeypatch):
    """It claims nothing, but writes history rows of cancelled jobs, whose ids carry the time."""
    job = JobFactory(lapsed=True, cancel_requested_at=timezone.now())
    monkeypatch.setattr(clock, "now", lambda: timezone.now() + HOUR if VENDOR == "postgresql" else timezone.now())
    rescuer.rescue(retry_lost)
    assert abs(instant_of(history(job).id) - timezone.now()) < timedelta(minutes=1)


def test_the_judge_may_bury(rescuer):
    job = JobFactory(lapsed=True)
    rescuer.rescue(bury_lost)
    assert dead(job).reason == "worker_lost"
    assert whereabouts(job.id) == ["dead"]


def test_each_run_is_judged_by_itself(rescuer):
    retried, given_up = JobFactory(lapsed=True, type="retry"), JobFactory(lapsed=True, type="bury")
    rescuer.rescue(lambda lease: retry_lost(lease) if lease.type == "retry" else bury_lost(lease))
    assert (whereabouts(retried.id), whereabouts(given_up.id)) == (["jobs"], ["dead"])


def test_live_leases_and_other_jobs_are_left_alone(rescuer):
    jobs = [JobFactory(processing=True), JobFactory(), JobFactory(due=True)]
    before = list(Job.objects.order_by("id").values())
    assert list(rescuer.rescue(retry_lost)) == []
    assert list(Job.objects.order_by("id").values()) == before
    assert len(jobs) == 3


def test_nobody_has_to_know_the_worker(rescuer):
    """Liveness is a matter of the job's row: neither a missing nor a lively worker row changes it."""
    WorkerFactory(id="alive", last_seen_at=timezone.now())
    JobFactory(lapsed=True, locked_by="alive")
    JobFactory(lapsed=True, locked_by="gone")
    assert not Worker.objects.filter(id="gone").exists()
    assert len(rescuer.rescue(retry_lost)) == 2


def test_a_worker_that_comes_back_under_its_old_name_does_not_own_its_old_runs(open_session, rescuer):
    JobFactory()
    old = claim_one(open_session("web-1"))
    let_time_pass(HOUR)
    assert len(rescuer.rescue(retry_lost)) == 1
    rescuer.stage()
    namesake = open_session("web-1")
    new = claim_one(namesake)
    assert len(settle(namesake, finished(old)).lost) == 1
    assert settle(namesake, finished(new)).written == {new.id: "succeeded"}


def test_how_long_a_job_runs_does_not_matter_only_its_lease(rescuer):
    """A job of two hours is found as fast as one of a second, and not before its lease is over."""
    two_hours_ago = timezone.now() - 2 * HOUR
    alive = JobFactory(processing=True, created_at=two_hours_ago, run_at=two_hours_ago)
    long, short = JobFactory(lapsed=True, run_at=two_hours_ago), JobFactory(lapsed=True)
    assert {outcome.job_id for outcome in rescuer.rescue(retry_lost)} == {long.id, short.id}
    assert stored(alive).status == "processing"


def test_a_job_whose_run_was_lost_can_be_claimed_again_with_one_attempt_used(open_session, rescuer):
    JobFactory()
    claim_one(open_session("dies"))
    let_time_pass(HOUR)
    rescuer.rescue(retry_lost)
    rescuer.stage()
    assert claim_one(open_session("lives")).attempt == 2


def test_nothing_is_rescued_twice(rescuer):
    JobFactory(lapsed=True)
    assert len(rescuer.rescue(retry_lost)) == 1
    assert list(rescuer.rescue(retry_lost)) == []


def test_a_pass_takes_a_bounded_number_and_the_oldest_first(rescuer):
    JobFactory.create_many(MAX_RESCUED, lapsed=True)
    oldest = JobFactory(lapsed=True, locked_until=timezone.now() - HOUR)
    assert len(rescuer.rescue(retry_lost)) == MAX_RESCUED
    assert stored(oldest).status == "scheduled"
    assert len(rescuer.rescue(retry_lost)) == 1


def test_a_judge_that_fails_leaves_the_leases_as_they_were(rescuer):
    JobFactory.create_batch(3, lapsed=True)
    before = list(Job.objects.order_by("id").values())

    def judge(lease):
        raise LookupError("no verdict")

    with pytest.raises(LookupError):
        rescuer.rescue(judge)
    assert list(Job.objects.order_by("id").values()) == before
    assert len(rescuer.rescue(retry_lost)) == 3, "the session still works"


# Grace


def test_nothing_is_rescued_before_a_third_of_the_lease_in_contact(open_session, monkeypatch):
    JobFactory(lapsed=True)
    rescuer = open_session("rescuer", lease=timedelta(seconds=1.5))
    start = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: start)
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 0.49)
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 0.51)
    assert len(rescuer.rescue(retry_lost)) == 1


@on_postgresql
def test_any_call_is_contact(open_session, monkeypatch):
    JobFactory(lapsed=True)
    rescuer = open_session("rescuer", lease=timedelta(seconds=1.5))
    start = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: start)
    rescuer.stage()
    monkeypatch.setattr(clock, "monotonic", lambda: start + 0.51)
    assert len(rescuer.rescue(retry_lost)) == 1


def test_contact_begins_anew_with_each_connection(open_session, monkeypatch):
    JobFactory(lapsed=True)
    rescuer = open_session("rescuer", lease=timedelta(seconds=1.5))
    start = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: start)
    rescuer.stage()
    rescuer.close()
    monkeypatch.setattr(clock, "monotonic", lambda: start + 0.6)
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 1.2)
    assert len(rescuer.rescue(retry_lost)) == 1


def test_a_clock_of_the_database_that_is_set_ahead_is_no_contact(open_session, monkeypatch):
    """Leases lapse then whose holders had no time to renew them. So it is when a machine was asleep."""
    rescuer = open_session("rescuer", lease=timedelta(seconds=9))
    real, start, ahead = clock.DatabaseClock.sample, clock.monotonic(), [timedelta(0)]
    monkeypatch.setattr(clock.DatabaseClock, "sample", lambda self, instant: real(self, instant + ahead[-1]))

    def at(seconds):
        monkeypatch.setattr(clock, "monotonic", lambda: start + seconds)
        rescuer.look(timedelta(seconds=6))
        return len(rescuer.rescue(retry_lost))

    JobFactory(processing=True)
    assert [at(0), at(2.9)] == [0, 0]
    ahead.append(HOUR)
    JobFactory(lapsed=True)
    assert [at(3.1), at(6)] == [0, 0]
    assert at(6.2) == 1


# Against runs that end at the same time


def test_jobs_that_finish_while_a_rescuer_runs_stay_finished(open_session):
    """The lease is as long as the run, and rescue passes never pause."""
    jobs = JobFactory.create_many(300)
    over = []

    def finish_all():
        try:
            with own_session("worker", lease=timedelta(0)) as session:
                while some := claim(session, limit=7, suspects=7):
                    while (tick := settle(session, *map(finished, some))).busy:
                        some = [job for job in some if job.id in {outcome.job_id for outcome in tick.busy}]
        finally:
            over.append(True)

    def rescue_all():
        with own_session("rescuer", lease=timedelta(0)) as session:
            while not over:
                session.rescue(retry_lost)
                session.stage()

    in_threads(lambda number: (finish_all if number else rescue_all)(), 2)
    session = open_session("last")
    session.stage()
    while some := claim(session, limit=100, suspects=100):
        settle(session, *map(finished, some))
    assert [whereabouts(job.id) for job in jobs] == [["history"]] * len(jobs)
