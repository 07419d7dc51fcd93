from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs.ids import uuid7
from django_jobs.models import Job
from tests.factories import JobFactory

from .support import (
    claim,
    claim_one,
    finished,
    let_time_pass,
    rescheduled,
    retry_lost,
    settle,
    stored,
)

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def leases(*jobs):
    return {job.id: job.token for job in jobs}


def leased_for(job):
    return stored(job).locked_until - timezone.now()


def test_a_renewed_lease_runs_anew_from_now(open_session):
    session = open_session(lease=timedelta(seconds=60))
    JobFactory()
    claimed = claim_one(session)
    let_time_pass(timedelta(seconds=50))
    renewal = session.renew(leases(claimed))
    assert set(renewal.renewed) == {claimed.id}
    assert not [*renewal.busy, *renewal.lost, *renewal.cancelled]
    assert timedelta(seconds=50) < leased_for(claimed) < timedelta(seconds=70)


def test_only_the_leases_that_are_named_are_renewed(session):
    """A run that has ended is not kept alive by its living process."""
    JobFactory.create_batch(2)
    running, ended = claim(session)
    let_time_pass(HOUR)
    session.renew(leases(running))
    assert leased_for(running) > timedelta(0) > leased_for(ended)


def test_a_lease_that_ran_out_but_was_not_taken_is_renewed(session):
    JobFactory()
    claimed = claim_one(session)
    let_time_pass(HOUR)
    assert set(session.renew(leases(claimed)).renewed) == {claimed.id}
    assert settle(session, finished(claimed)).written == {claimed.id: "succeeded"}


def test_a_lease_that_was_taken_is_lost(open_session, session):
    JobFactory()
    old = claim_one(session)
    let_time_pass(HOUR)
    rescuer = open_session("rescuer", lease=timedelta(0))
    rescuer.rescue(retry_lost)
    assert set(session.renew(leases(old)).lost) == {old.id}, "nobody has it"
    rescuer.stage()
    new = claim_one(open_session("other"))
    before = stored(new).locked_until
    assert set(session.renew(leases(old)).lost) == {old.id}, "somebody else has it"
    assert stored(new).locked_until == before


def test_leases_of_finished_and_of_released_runs_are_lost(session):
    JobFactory.create_batch(2)
    first, second = claim(session)
    settle(session, finished(first), rescheduled(second))
    assert set(session.renew(leases(first, second)).lost) == {first.id, second.id}


def test_a_job_that_never_was_is_lost(session):
    job_id = uuid7()
    assert set(session.renew({job_id: 1}).lost) == {job_id}


def test_renewing_nothing_renews_nothing(session):
    JobFactory(lapsed=True)
    renewal = session.renew({})
    assert not [*renewal.renewed, *renewal.busy, *renewal.lost, *renewal.cancelled]


def test_thousands_of_leases_are_renewed_at_once(session):
    JobFactory.create_many(1200)
    jobs = claim(session, limit=1200)
    let_time_pass(HOUR)
    assert len(session.renew(leases(*jobs)).renewed) == 1200
    assert not Job.objects.filter(locked_until__lt=timezone.now()).exists()


# Progress


def test_progress_is_shown_on_the_job(session):
    JobFactory.create_batch(2)
    first, second = claim(session)
    session.show_progress({first.id: (first.token, {"done": 0.5, "note": "half"}), second.id: (second.token, 7)})
    assert stored(first).progress == {"done": 0.5, "note": "half"}
    assert stored(second).progress == 7


def test_progress_of_a_run_that_lost_its_lease_is_not_shown(session):
    JobFactory()
    claimed = claim_one(session)
    session.show_progress({claimed.id: (claimed.token - 1, 0.9), uuid7(): (1, 0.1)})
    assert stored(claimed).progress is None


def test_showing_nothing_is_allowed(session):
    session.show_progress({})
