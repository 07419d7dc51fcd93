"""Freeing the leases of a process that is known to be gone, without waiting for them to lapse."""

from datetime import timedelta

import pytest
from django.db import connections, transaction

from django_jobs.engines.protocol import MAX_RESCUED
from django_jobs.models import Job
from tests.factories import JobFactory

from .support import (
    VENDOR,
    claim,
    claim_one,
    finished,
    in_threads,
    own_session,
    rescheduled,
    retry_lost,
    settle,
    settle_until_written,
    stored,
    whereabouts,
)

pytestmark = pytest.mark.django_db(transaction=True)


def hand_back(lease):
    class Job:
        id, token = lease.job_id, lease.token

    return rescheduled(Job, why="handed_back")


def test_live_leases_of_the_named_worker_are_freed_and_no_others(session):
    mine = JobFactory(processing=True, locked_by="dead")
    others = [JobFactory(processing=True, locked_by="alive"), JobFactory(lapsed=True, locked_by="dead, too")]
    (outcome,) = session.free("dead", retry_lost)
    assert outcome.job_id == mine.id
    assert (stored(mine).status, stored(mine).lost_runs, stored(mine).attempts) == ("scheduled", 1, 1)
    assert {stored(job).status for job in others} == {"processing"}


def test_no_contact_is_needed_before(open_session):
    """The rescuer waits because silence may be anybody's fault; here the death is known."""
    JobFactory(processing=True, locked_by="dead")
    assert len(open_session(lease=timedelta(hours=1)).free("dead", retry_lost)) == 1


def test_what_had_not_started_is_handed_back_unharmed(session):
    job = JobFactory(processing=True, locked_by="dead")
    session.free("dead", hand_back)
    assert (stored(job).status, stored(job).lost_runs, stored(job).attempts) == ("scheduled", 0, 0)


def test_the_outcome_of_the_freed_run_does_not_count_any_more(open_session):
    JobFactory()
    holder = open_session("frozen")
    old = claim_one(holder)
    session = open_session("supervisor")
    session.free("frozen", hand_back)
    assert len(settle(holder, finished(old)).lost) == 1
    session.stage()
    assert settle(session, finished(claim_one(session))).written == {old.id: "succeeded"}


def test_a_call_frees_a_bounded_number_and_the_next_goes_on(session):
    JobFactory.create_many(MAX_RESCUED + 1, processing=True, locked_by="dead")
    assert len(session.free("dead", retry_lost)) == MAX_RESCUED
    assert len(session.free("dead", retry_lost)) == 1
    assert list(session.free("dead", retry_lost)) == []


def test_a_judge_that_fails_leaves_the_leases_as_they_were(session):
    job = JobFactory(processing=True, locked_by="dead")

    def judge(lease):
        raise LookupError("no verdict")

    with pytest.raises(LookupError):
        session.free("dead", judge)
    assert stored(job).status == "processing"
    assert len(session.free("dead", retry_lost)) == 1


@pytest.mark.skipif(VENDOR == "sqlite", reason="a writer locks the whole file there")
def test_a_row_that_is_locked_is_left_for_the_next_call(session):
    """As by the last statement of the dead process, which the server has not finished."""
    locked, free = (JobFactory(processing=True, locked_by="dead") for _ in range(2))
    with transaction.atomic():
        list(Job.objects.using(connections["default"].alias).select_for_update().filter(id=locked.id))
        assert [outcome.job_id for outcome in session.free("dead", retry_lost)] == [free.id]
    assert [outcome.job_id for outcome in session.free("dead", retry_lost)] == [locked.id]


def test_freeing_beside_a_worker_that_lives_after_all_loses_nothing(open_session):
    jobs = JobFactory.create_many(200)
    over = []

    def finish_all():
        try:
            with own_session("worker") as session:
                while some := claim(session, limit=7, suspects=7):
                    lost = {outcome.job_id for outcome in settle(session, *map(finished, some)).lost}
                    assert lost <= {job.id for job in some}
        finally:
            over.append(True)

    def free_all():
        with own_session("supervisor") as session:
            while not over:
                session.free("worker", hand_back)
                session.stage()

    in_threads(lambda number: (finish_all if number else free_all)(), 2)
    session = open_session("last")
    session.free("worker", hand_back)
    session.stage()
    while some := claim(session, limit=100, suspects=100):
        settle_until_written(session, *map(finished, some))
    assert [whereabouts(job.id) for job in jobs] == [["history"]] * len(jobs)
