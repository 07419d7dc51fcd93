"""Retrying and discarding dead jobs."""

import threading
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobs import discard_dead, get_job, retry_dead
from django_jobs.ids import uuid7
from django_jobs.models import DeadJob, Job, JobHistory
from tests.engines.support import in_threads
from tests.factories import DeadJobFactory
from tests.operations.handlers import urgent
from tests.operations.support import VENDOR, bury, claim, committing, session

pytestmark = committing


def die():
    job = urgent.using(tenant="acme", idempotency_key="k", context={"request_id": "r-1"}).enqueue(text="a")
    bury()
    return job.id


def test_a_retried_job_is_the_same_job_with_fresh_attempts():
    job_id = die()
    dead = DeadJob.objects.get()
    assert retry_dead(job_id) == 1
    job = Job.objects.get()
    assert job.id == job_id
    for name in ("queue", "type", "payload", "priority", "tenant", "max_attempts", "idempotency_key", "context"):
        assert getattr(job, name) == getattr(dead, name), name
    assert (job.status, job.attempts, job.lost_runs, job.lease_token, job.locked_by) == ("pending", 0, 0, None, "")
    assert job.created_at == dead.created_at
    assert (job.errors, job.last_error) == (dead.errors, dead.last_error)
    assert len(job.errors) == 1
    assert not DeadJob.objects.exists()


def test_a_retried_job_can_be_claimed():
    job_id = die()
    retry_dead(job_id)
    with session() as opened:
        (claimed,) = claim(opened, queues=["urgent"])
    assert (claimed.id, claimed.attempt, claimed.max_attempts) == (job_id, 1, 3)


def test_a_retry_may_be_delayed():
    job_id = die()
    assert retry_dead([job_id], delay=timedelta(hours=1)) == 1
    job = Job.objects.get()
    assert job.status == "scheduled"
    assert timedelta(minutes=59) < job.run_at - timezone.now() < timedelta(minutes=61)
    assert get_job(job_id).status == "failed_retrying"


def test_a_discarded_job_becomes_history():
    job_id = die()
    dead = DeadJob.objects.get()
    assert discard_dead(job_id) == 1
    row = JobHistory.objects.get()
    assert (row.job_id, row.status, row.type, row.queue) == (job_id, "discarded", "operations.urgent", "urgent")
    assert (row.tenant, row.attempts, row.errors) == ("acme", 1, dead.errors)
    assert row.enqueued_at == dead.created_at
    assert not DeadJob.objects.exists()


@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_a_second_time_nothing_is_moved(function):
    job_id = die()
    assert [function(job_id), function(job_id)] == [1, 0]


@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_only_dead_jobs_are_touched(function):
    pending = urgent.enqueue(text="b").id
    assert function([pending, uuid7()]) == 0
    assert get_job(pending).status == "pending"


@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_ids_may_be_strings_and_come_from_a_generator(function):
    dead = DeadJobFactory.create_batch(3)
    assert function(str(dead[0].id)) == 1
    assert function(str(job.id) for job in dead) == 2


@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_the_same_id_twice_moves_once(function):
    dead = DeadJobFactory()
    assert function([dead.id, dead.id]) == 1


@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_no_ids_are_no_work(function, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert function([]) == 0


@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_more_than_one_batch_is_moved(function):
    dead = DeadJobFactory.build_batch(700)
    DeadJob.objects.bulk_create(dead)
    assert function(job.id for job in dead) == 700
    assert not DeadJob.objects.exists()
    assert (Job if function is retry_dead else JobHistory).objects.count() == 700


@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_a_rolled_back_action_did_not_happen(function):
    job_id = die()
    with transaction.atomic():
        function(job_id)
        transaction.set_rollback(True)
    assert get_job(job_id).status == "dead"


@pytest.mark.parametrize("first", [retry_dead, discard_dead])
@pytest.mark.parametrize("second", [retry_dead, discard_dead])
def test_a_double_click_moves_each_job_once(first, second):
    dead = DeadJobFactory.create_batch(30)
    ids = [job.id for job in dead]
    barrier = threading.Barrier(2)
    moved = [0, 0]

    def click(number):
        for job_id in ids:
            barrier.wait()
            moved[number] += (first, second)[number](job_id)

    in_threads(click, 2)
    assert sum(moved) == len(ids)
    assert Job.objects.count() + JobHistory.objects.count() == len(ids)
    assert not DeadJob.objects.exists()


@pytest.mark.skipif(VENDOR != "postgresql", reason="SQLite has one writer")
@pytest.mark.parametrize("function", [retry_dead, discard_dead])
def test_a_locked_job_stops_nobody(function):
    from tests.operations.support import start

    dead = DeadJobFactory.create_batch(2)
    with transaction.atomic():
        DeadJob.objects.select_for_update().get(id=dead[0].id)
        assert start(function, [job.id for job in dead]).result(timeout=5) == 1
    assert list(DeadJob.objects.values_list("id", flat=True)) == [dead[0].id]


def test_a_retried_job_may_die_again_and_keeps_all_its_errors():
    job_id = die()
    retry_dead(job_id)
    bury()
    assert [error["attempt"] for error in get_job(job_id).errors] == [1, 1]
    assert get_job(job_id).status == "dead"
