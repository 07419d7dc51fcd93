import json
from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from django_jobs.engines.values import ClaimRequest
from django_jobs.models import Job
from tests.factories import JobFactory, QueueFactory

from .support import claim, claim_one, finished, let_time_pass, new_job, settle, stored

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def ids(jobs):
    return [job.id for job in jobs]


def test_a_claimed_job_is_leased_to_the_worker_and_the_attempt_is_counted(open_session):
    job = JobFactory(type="invoice", priority=3, tenant="acme", attempts=1, max_attempts=7)
    claimed = claim_one(open_session(worker="w-17", lease=timedelta(seconds=60)))
    assert (claimed.id, claimed.type, claimed.queue, claimed.priority) == (job.id, "invoice", "default", 3)
    assert (claimed.tenant, claimed.attempt, claimed.max_attempts) == ("acme", 2, 7)
    assert (claimed.lost_runs, claimed.given_up) == (0, False)
    row = stored(job)
    assert (row.status, row.locked_by, row.lease_token) == ("processing", "w-17", claimed.token)
    assert row.attempts == 2
    assert timedelta(seconds=50) < row.locked_until - timezone.now() < timedelta(seconds=70)


def test_payload_and_context_come_as_json_text(session):
    payload = {"name": "Ünïcödé \\ \t\n\" '", "list": [1, 2.5, None, True], "nested": {"a": {}}}
    JobFactory(payload=payload, context={"request_id": "r-1"})
    claimed = claim_one(session)
    assert json.loads(claimed.payload) == payload
    assert json.loads(claimed.context) == {"request_id": "r-1"}


def test_a_claim_takes_no_more_than_its_limit(session):
    JobFactory.create_batch(30)
    assert len(claim(session, limit=7)) == 7
    assert len(claim(session, limit=50)) == 23


def test_a_claim_of_nothing_is_empty(session):
    assert claim(session) == []
    tick = session.tick([], [])
    assert not [*tick.written, *tick.busy, *tick.lost, *tick.jobs]


def test_higher_priority_comes_first_and_then_the_job_that_was_ready_first(session, statements, connection):
    first, urgent, second = (new_job(priority=priority) for priority in (0, 9, 0))
    for job in (first, urgent, second):
        statements.enqueue(connection, job)
    assert ids(claim(session)) == ids([urgent, first, second])


def test_negative_priorities_come_last(session):
    low, usual = JobFactory(priority=-5), JobFactory()
    assert ids(claim(session)) == ids([usual, low])


def test_a_limit_takes_the_jobs_in_front(session):
    JobFactory.create_batch(5)
    urgent = JobFactory(priority=1)
    assert ids(claim(session, limit=1)) == [urgent.id]


def test_a_scheduled_job_is_not_claimed_however_long_it_waits(session):
    JobFactory.create_many(1000, scheduled=True)
    assert claim(session, limit=100) == []
    let_time_pass(2 * HOUR)
    assert claim(session, limit=100) == []


def test_a_leased_job_is_not_claimed_even_after_its_lease(session):
    JobFactory(processing=True)
    JobFactory(lapsed=True)
    assert claim(session) == []


def test_lease_tokens_only_grow_and_no_two_claims_have_the_same(open_session):
    JobFactory.create_batch(20)
    first, second = open_session("w-1"), open_session("w-2")
    tokens = [job.token for session in (first, second, first, second) for job in claim(session, limit=5)]
    assert len(set(tokens)) == 20
    batches = [tokens[n : n + 5] for n in range(0, 20, 5)]
    assert all(max(before) < min(after) for before, after in pairwise(batches))


def test_a_job_claimed_again_has_a_higher_token(open_session):
    job = JobFactory()
    session = open_session()
    first = claim_one(session)
    Job.objects.filter(id=job.id).update(status="pending")
    assert claim_one(session).token > first.token


def test_only_the_named_queues_are_served(session):
    JobFactory(queue="bulk")
    assert claim(session, queues=("default", "urgent")) == []


def test_the_first_queue_is_served_first_whatever_the_priorities(session):
    bulk = JobFactory(queue="bulk", priority=100)
    urgent = JobFactory(queue="urgent")
    assert ids(claim(session, queues=("urgent", "bulk"))) == ids([urgent, bulk])


def test_the_queues_of_a_request_share_its_limit(session):
    JobFactory.create_batch(3, queue="urgent")
    JobFactory.create_batch(9, queue="bulk")
    jobs = claim(session, limit=5, queues=("urgent", "bulk"))
    assert [job.queue for job in jobs] == ["urgent"] * 3 + ["bulk"] * 2


def test_each_request_of_a_tick_gets_jobs_of_its_own(session):
    JobFactory.create_batch(5)
    JobFactory.create_batch(5, queue="bulk")
    requests = [
        ClaimRequest(queues=("default",), limit=3),
        ClaimRequest(queues=("default", "bulk"), limit=4),
        ClaimRequest(queues=("urgent",), limit=4),
    ]
    jobs = session.tick([], requests).jobs
    assert [[job.queue for job in some] for some in jobs] == [
        ["default"] * 3,
        ["default"] * 2 + ["bulk"] * 2,
        [],
    ]
    assert len({job.id for some in jobs for job in some}) == 7


def test_two_workers_get_different_jobs(open_session):
    JobFactory.create_batch(10)
    claimed = ids(claim(open_session("w-1"), limit=6)) + ids(claim(open_session("w-2"), limit=6))
    assert len(claimed) == len(set(claimed)) == 10


def test_jobs_with_the_same_idempotency_key_do_not_stand_in_each_others_way(session):
    """As after an operator's retry of a dead job whose key was used again."""
    JobFactory.create_batch(3, idempotency_key="k")
    JobFactory(idempotency_key="k", due=True)
    session.stage()
    jobs = claim(session)
    assert len(jobs) == 4
    assert set(settle(session, *map(finished, jobs)).written.values()) == {"succeeded"}


@pytest.mark.parametrize("resume_in", [None, HOUR])
def test_a_paused_queue_is_skipped(session, resume_in):
    QueueFactory(name="bulk", paused=True, resume_at=resume_in and timezone.now() + resume_in)
    JobFactory(queue="bulk")
    other = JobFactory()
    assert ids(claim(session, queues=("bulk", "default"))) == [other.id]


def test_a_paused_queue_is_served_again_from_its_resume_time_on(session):
    QueueFactory(name="bulk", paused=True, resume_at=timezone.now() - timedelta(seconds=1))
    JobFactory(queue="bulk")
    assert len(claim(session, queues=("bulk",))) == 1


def test_a_queue_that_is_known_but_not_paused_is_served(session):
    QueueFactory(name="default")
    JobFactory()
    assert len(claim(session)) == 1


def test_one_suspect_is_claimed_at_a_time(session):
    JobFactory.create_batch(3, lost_runs=1)
    usual = JobFactory.create_batch(2)
    jobs = claim(session)
    assert sorted(job.lost_runs for job in jobs) == [0, 0, 1]
    assert set(ids(usual)) < set(ids(jobs))


def test_no_suspect_is_claimed_while_the_process_has_one(session):
    JobFactory(lost_runs=1)
    assert claim(session, suspects=0) == []


def test_a_suspect_takes_the_only_slot_so_that_it_cannot_be_starved(session):
    JobFactory(priority=9)
    suspect = JobFactory(lost_runs=2)
    claimed = claim_one(session)
    assert (claimed.id, claimed.lost_runs) == (suspect.id, 2)


def test_a_suspect_of_any_queue_is_offered_but_only_one_of_all(session):
    JobFactory(queue="bulk", lost_runs=1)
    JobFactory(queue="default", lost_runs=1)
    assert [job.queue for job in claim(session, queues=("urgent", "default", "bulk"))] == ["default"]
    assert [job.queue for job in claim(session, queues=("urgent", "default", "bulk"))] == ["bulk"]


def test_a_suspect_goes_in_front_of_a_full_queue(session):
    JobFactory.create_batch(5, queue="default", priority=9)
    suspect = JobFactory(queue="bulk", lost_runs=1)
    claimed = claim(session, limit=2, queues=("default", "bulk"))
    assert len(claimed) == 2
    assert suspect.id in {job.id for job in claimed}


def test_a_suspect_of_a_paused_queue_is_not_claimed(session):
    QueueFactory(paused=True)
    JobFactory(lost_runs=1)
    assert claim(session) == []


def test_suspects_come_in_ready_order_too(session):
    JobFactory(lost_runs=1)
    urgent = JobFactory(lost_runs=1, priority=5)
    assert ids(claim(session)) == [urgent.id]


@pytest.mark.parametrize(("hours", "given_up"), [(23, False), (25, True)])
def test_a_job_that_nobody_could_take_for_longer_than_the_patience_is_given_up(session, hours, given_up):
    JobFactory(untaken_since=timezone.now() - hours * HOUR)
    assert claim_one(session).given_up is given_up
