"""Stopping a worker: what has not started goes back as if it had never been claimed."""

import asyncio
import threading

import pytest

from django_jobs import clock, get_job
from django_jobs.models import Job, JobHistory, Worker
from django_jobs.worker.stopping import Step, Stopping
from tests.waiting import wait_for
from tests.worker.embedded import EmbeddedWorker, running_worker
from tests.worker.stubborn import ignore_cancellation


def test_unstarted_jobs_are_handed_back_with_their_attempt_refunded(job):
    hold, release = threading.Event(), threading.Event()

    @job("quick")
    def quick():
        if hold.is_set():
            release.wait(60)

    quick.enqueue_many({} for _ in range(4000))
    with running_worker(concurrency=2) as worker:
        wait_for(lambda: JobHistory.objects.count() > 500)
        hold.set()
        wait_for(lambda: worker.process._groups[0].running == 2)
        worker.stop()
        wait_for(lambda: Job.objects.filter(status="processing").count() == 2)
        assert worker.alive
        release.set()
        worker.join()
    assert worker.code == 0
    assert set(Job.objects.values_list("attempts", "locked_by", "lease_token")) == {(0, "", None)}
    assert Job.objects.count() + JobHistory.objects.count() == 4000
    assert set(JobHistory.objects.values_list("attempts", flat=True)) == {1}


def test_what_overlaps_a_deploy_runs_once(job):
    @job("quick")
    def quick():
        pass

    quick.enqueue_many({} for _ in range(2000))
    for _ in range(4):
        with running_worker(concurrency=3):
            done = JobHistory.objects.count()
            wait_for(lambda done=done: JobHistory.objects.count() > done + 50 or not Job.objects.exists())
    with running_worker():
        wait_for(lambda: not Job.objects.exists(), timeout=30)
    assert JobHistory.objects.filter(status="succeeded", attempts=1).count() == 2000


def test_a_second_stop_hands_running_jobs_back_at_once(job):
    release, begun, cancelled = threading.Event(), threading.Event(), threading.Event()

    @job("thread")
    def thread():
        release.wait(60)

    @job("task")
    async def task():
        try:
            begun.set()
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            cancelled.set()
            raise

    jobs = [thread.enqueue(), task.enqueue()]
    with running_worker() as worker:
        wait_for(lambda: worker.process._groups[0].running == 2 and begun.is_set())
        worker.stop()
        worker.stop()
        worker.join(10)
        release.set()
    assert cancelled.is_set()
    assert [(get_job(one.id).status, get_job(one.id).attempts) for one in jobs] == [("scheduled", 0)] * 2


@pytest.mark.parametrize(("asked", "ends"), [(1, 0), (0, 1), (1, 1), (1, 2)])
def test_a_process_that_ends_by_itself_and_is_told_to_once_waits_for_the_whole_timeout(monkeypatch, asked, ends):
    """As in a deploy; only a second request from outside is in a hurry."""
    stopping = Stopping(30)
    for _ in range(ends):
        stopping.end()
    for _ in range(asked):
        stopping.ask()
    monkeypatch.setattr(clock, "monotonic", lambda: 1000.0)
    assert [stopping.next_step(cancellable=False) for _ in range(3)] == [Step.BEGIN, None, None]
    monkeypatch.setattr(clock, "monotonic", lambda: 1029.9)
    assert stopping.next_step(cancellable=False) is None
    monkeypatch.setattr(clock, "monotonic", lambda: 1030.0)
    assert stopping.next_step(cancellable=False) is Step.CANCEL


def test_a_process_that_ends_by_itself_is_in_a_hurry_once_it_is_told_twice():
    stopping = Stopping(30)
    stopping.end()
    assert [stopping.next_step(cancellable=False) for _ in range(2)] == [Step.BEGIN, None]
    stopping.ask()
    stopping.ask()
    assert stopping.next_step(cancellable=False) is Step.CANCEL


def test_an_async_run_may_use_its_cancellation_to_finish(job):
    @job("finishes")
    async def finishes():
        try:
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            return "saved what there was"

    enqueued = finishes.enqueue()
    with running_worker() as worker:
        wait_for(lambda: worker.process._groups[0].running == 1)
        wait_for(lambda: any(run.stop for _, run in worker.process.held.snapshot()))
        worker.stop()
        worker.stop()
        worker.join(10)
    assert get_job(enqueued.id).result == "saved what there was"


def test_the_job_of_an_async_run_that_ignores_its_cancellation_is_handed_back_while_the_run_goes_on(job, configure):
    configure(SHUTDOWN_TIMEOUT=0)
    late, ignoring, ended = threading.Event(), threading.Event(), threading.Event()

    @job("stubborn")
    async def stubborn():
        await ignore_cancellation(late, ignoring)
        ended.set()

    enqueued = stubborn.enqueue()
    with running_worker() as worker:
        wait_for(lambda: any(run.stop for _, run in worker.process.held.snapshot()))
        worker.stop()
        wait_for(lambda: get_job(enqueued.id).status == "scheduled")
        assert ignoring.is_set()
        assert not ended.is_set()
        worker.join(10)
    late.set()
    assert get_job(enqueued.id).attempts == 0


def test_a_handler_that_ends_after_the_hand_back_changes_nothing(job):
    release, ended = threading.Event(), threading.Event()

    @job("late")
    def late():
        release.wait(60)
        ended.set()
        return "late"

    enqueued = late.enqueue()
    with running_worker() as worker:
        wait_for(lambda: worker.process._groups[0].running == 1)
        worker.stop()
        worker.stop()
        worker.join(10)
    release.set()
    assert ended.wait(10)
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, info.result) == ("scheduled", 0, None)


def test_a_worker_that_was_stopped_before_it_began_claims_nothing(job):
    @job("noop")
    def noop():
        pass

    enqueued = noop.enqueue()
    worker = EmbeddedWorker()
    worker.stop()
    worker.start()
    assert worker.join() == 0
    assert (get_job(enqueued.id).status, get_job(enqueued.id).attempts) == ("pending", 0)


def test_a_stopped_worker_is_shown_as_stopped():
    with running_worker() as worker:
        wait_for(lambda: Worker.objects.filter(pk=worker.process.id).exists())
        assert Worker.objects.get().stopped_at is None
    assert Worker.objects.get().stopped_at is not None
