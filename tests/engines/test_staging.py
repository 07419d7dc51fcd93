from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs.engines.protocol import MAX_STAGED
from django_jobs.models import Job
from tests.factories import JobFactory, QueueFactory

from .support import claim, finished, let_time_pass, new_job, settle, stored

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def close_to(wait, expected):
    return abs(wait - expected) < 10 * SECOND


def test_due_jobs_become_pending(session):
    due, ahead = JobFactory(due=True), JobFactory(scheduled=True)
    staging = session.stage()
    assert (staging.staged, staging.queues) == (1, {"default"})
    assert (stored(due).status, stored(ahead).status) == ("pending", "scheduled")
    assert [job.id for job in claim(session)] == [due.id]


def test_without_scheduled_jobs_nothing_is_due_next(session):
    JobFactory()
    JobFactory(processing=True)
    staging = session.stage()
    assert (staging.staged, staging.queues, staging.next_due) == (0, frozenset(), None)


def test_the_time_to_the_next_scheduled_job_is_told(session):
    JobFactory(scheduled=True)
    JobFactory(scheduled=True, queue="bulk", priority=-3, run_at=timezone.now() + HOUR / 2)
    assert close_to(session.stage().next_due, HOUR / 2)


def test_it_is_told_for_a_queue_in_which_something_was_due_as_well(session):
    JobFactory(due=True)
    JobFactory(scheduled=True)
    staging = session.stage()
    assert staging.staged == 1
    assert close_to(staging.next_due, HOUR)


def test_jobs_of_a_priority_become_ready_in_the_order_they_were_due(session):
    now = timezone.now()
    second = JobFactory(due=True, run_at=now - SECOND)
    first = JobFactory(due=True, run_at=now - HOUR)
    urgent = JobFactory(due=True, priority=9)
    session.stage()
    assert [job.id for job in claim(session)] == [urgent.id, first.id, second.id]


def test_a_job_that_became_due_stands_behind_those_that_were_ready_before(session, statements, connection):
    JobFactory(due=True)
    before = new_job()
    statements.enqueue(connection, before)
    session.stage()
    after = new_job()
    statements.enqueue(connection, after)
    ids = [job.id for job in claim(session)]
    assert (ids[0], ids[2]) == (before.id, after.id)


def test_a_pass_stages_a_bounded_number_of_each_queue_and_priority(session):
    """So that a million jobs due at once do not hold up an urgent one."""
    JobFactory.create_many(MAX_STAGED + 5, due=True)
    JobFactory(due=True, priority=9)
    JobFactory(due=True, queue="urgent")
    staging = session.stage()
    assert staging.staged == MAX_STAGED + 2
    assert staging.queues == {"default", "urgent"}
    assert staging.next_due == timedelta(0)
    assert claim(session, limit=1)[0].priority == 9
    assert session.stage().staged == 5


def test_many_queues_and_priorities_are_all_looked_at(session):
    groups = {(f"q{number % 7}", priority) for number in range(7) for priority in (-9, 0, 3)}
    for queue, priority in groups:
        JobFactory(due=True, queue=queue, priority=priority)
        JobFactory(scheduled=True, queue=queue, priority=priority)
    staging = session.stage()
    assert staging.staged == len(groups)
    assert staging.queues == {queue for queue, _ in groups}
    assert set(Job.objects.filter(status="pending").values_list("queue", "priority")) == groups


def test_jobs_hours_ahead_are_neither_staged_nor_claimed_and_run_once_when_due(session):
    jobs = JobFactory.create_many(1000, scheduled=True, run_at=timezone.now() + 2 * HOUR)
    assert session.stage().staged == 0
    assert claim(session, limit=1000) == []
    let_time_pass(2 * HOUR)
    assert session.stage().staged == 1000
    claimed = claim(session, limit=2000)
    assert {job.id for job in claimed} == {job.id for job in jobs}
    settle(session, *map(finished, claimed))
    assert session.stage().staged == 0
    assert claim(session) == []


def test_a_suspect_stays_one(session):
    JobFactory(due=True, lost_runs=2)
    session.stage()
    assert claim(session)[0].lost_runs == 2


def test_jobs_of_a_paused_queue_become_pending_but_wait(session):
    QueueFactory(paused=True)
    JobFactory(due=True)
    assert session.stage().staged == 1
    assert claim(session) == []
