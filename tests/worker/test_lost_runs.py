"""Runs that were lost with their workers: rescued, counted, and never mixed up with what the lost ones still do."""

import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from django_jobs import RunningJob, get_job
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.values import ClaimRequest
from django_jobs.exceptions import WorkerLost
from django_jobs.models import DeadJob, Job, JobCount, Worker
from django_jobs.worker.freeing import Freer
from tests.factories import JobFactory
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


@pytest.fixture(autouse=True)
def short_leases(configure):
    configure(LEASE=1)


def test_the_jobs_of_a_dead_worker_run_elsewhere_with_the_loss_on_record(job):
    @job("lost")
    def lost(run: RunningJob):
        return run.attempt

    row = JobFactory(type="lost", lapsed=True, attempts=1, locked_by="dead-worker")
    with running_worker():
        wait_for(lambda: get_job(row.id).status == "succeeded")
    info = get_job(row.id)
    assert (info.result, info.attempts) == (2, 2)
    (entry,) = info.errors
    assert entry["type"] == "django_jobs.exceptions.WorkerLost"
    assert "dead-worker" in entry["message"]
    assert entry["attempt"] == 1


def rescue():
    with running_worker(queues="urgent"):
        wait_for(lambda: not Job.objects.filter(status="processing").exists())


def free_by_a_supervisor():
    freer = Freer(EngineConfig(alias="default", worker="supervisor"), give_up=timedelta(seconds=30))
    freer.start()
    freer.free("dead-worker", "worker died: SIGKILL", None)
    freer.close(20)


def free_by_an_operator():
    call_command("freejobs", "dead-worker", stdout=StringIO())


@pytest.mark.parametrize("free", [rescue, free_by_a_supervisor, free_by_an_operator])
def test_a_lost_run_is_retried_after_the_delay_of_its_type(job, free):
    asked = []

    def in_an_hour(attempt, error):
        asked.append((attempt, type(error)))
        return timedelta(hours=1)

    @job("patient", retry=in_an_hour)
    def patient():
        raise AssertionError("must not run now")

    row = JobFactory(type="patient", lapsed=True, attempts=2, locked_by="dead-worker")
    before = timezone.now()
    free()
    row.refresh_from_db()
    assert (row.status, row.attempts, row.lost_runs) == ("scheduled", 2, 1)
    assert before < row.run_at - timedelta(hours=1) < timezone.now()
    assert asked == [(2, WorkerLost)]


def test_lost_runs_are_counted_as_lost_by_who_rescues_them_and_named_in_the_log(job, caplog):
    @job("lost")
    def lost():
        pass

    JobFactory(type="lost", queue="bulk", lapsed=True)
    gone = JobFactory(type="lost", lapsed=True, attempts=3, max_attempts=3, locked_by="dead-worker")
    drain()
    counted = set(JobCount.objects.values_list("queue", "type", "outcome", "count"))
    assert counted == {("bulk", "lost", "lost", 1), ("default", "lost", "lost", 1), ("bulk", "lost", "succeeded", 1)}
    assert f"Job {gone.id} (lost): attempt 3 of 3 is lost, because worker dead-worker" in caplog.text


def test_a_lost_run_without_attempts_left_is_dead_as_worker_lost(job):
    @job("lost")
    def lost():
        raise AssertionError("must not run again")

    row = JobFactory(type="lost", lapsed=True, attempts=3, max_attempts=3)
    with running_worker():
        wait_for(lambda: get_job(row.id).status == "dead")
    dead = DeadJob.objects.get()
    assert (dead.reason, dead.error_type) == ("worker_lost", "django_jobs.exceptions.WorkerLost")


def test_a_key_whose_job_was_lost_in_mid_run_still_finds_it_and_blocks_nothing(job):
    @job("keyed")
    def keyed():
        return "done"

    first = keyed.using(idempotency_key="k").enqueue()
    session = open_session(EngineConfig(alias="default", worker="dead-worker"))
    session.tick([], [ClaimRequest(queues=("default",), limit=1)])
    session.close()
    Job.objects.update(locked_until=timezone.now() - timedelta(seconds=1))
    again = keyed.using(idempotency_key="k").enqueue()
    assert (again.id, again.status, again.duplicate) == (first.id, "processing", True)
    drain()
    info = get_job(first.id)
    assert (info.status, info.attempts) == ("succeeded", 2)


def test_on_lost_bury_buries_at_the_first_loss(job):
    @job("delicate", on_lost="bury")
    def delicate():
        raise AssertionError("must not run again")

    row = JobFactory(type="delicate", lapsed=True)
    with running_worker():
        wait_for(lambda: get_job(row.id).status == "dead")
    assert get_job(row.id).reason == "worker_lost"


def test_lost_jobs_of_a_type_this_build_does_not_know_are_rescued_not_buried():
    row = JobFactory(type="of_another_build", lapsed=True, attempts=1)
    with running_worker(queues="urgent"):
        wait_for(lambda: Job.objects.get(pk=row.id).status != "processing")
    assert Job.objects.get(pk=row.id).lost_runs == 1


def test_a_cancelled_run_that_is_lost_ends_as_cancelled(job):
    row = JobFactory(type="whatever", lapsed=True, cancel_requested_at=timezone.now())
    with running_worker(queues="urgent"):
        wait_for(lambda: get_job(row.id).status == "cancelled")


def test_rescue_does_not_ask_the_register_of_workers():
    row = JobFactory(type="whatever", lapsed=True, locked_by="alive-they-say")
    Worker.objects.create(id="alive-they-say", host="h", pid=1, queues=[], version="0")
    with running_worker(queues="urgent"):
        wait_for(lambda: Job.objects.get(pk=row.id).status != "processing")


def test_a_late_outcome_of_a_lost_lease_changes_nothing(job, caplog):
    release, started = threading.Event(), threading.Event()

    @job("slow")
    def slow(run: RunningJob):
        if run.attempt == 1:
            started.set()
            assert release.wait(30)
        return run.attempt

    enqueued = slow.enqueue()
    with running_worker() as first:
        assert started.wait(10)
        first.process.held.snapshot = list  # It renews nothing any more, as if it were cut off.
        with running_worker():
            wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        release.set()
        wait_for(lambda: "changed nothing" in caplog.text)
    assert get_job(enqueued.id).result == 2
    outcomes = JobCount.objects.filter(type="slow").values_list("outcome", "count")
    assert sorted(outcomes) == [("lost", 1), ("stale", 1), ("succeeded", 1)]


def test_a_drain_outlives_a_rescue(job):
    @job("lost")
    def lost():
        return "rescued"

    row = JobFactory(type="lost", lapsed=True)
    drain()
    assert get_job(row.id).result == "rescued"
