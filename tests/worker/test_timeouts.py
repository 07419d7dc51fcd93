"""Time-outs: a task is cancelled, a thread is given up on, and what comes late does not count."""

import asyncio
import threading

import pytest

from django_jobs import RunningJob, get_job
from django_jobs.models import DeadJob, Job
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker
from tests.worker.stubborn import ignore_cancellation


@pytest.fixture
def release():
    """Lets handlers that hang come back at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_an_async_run_past_its_timeout_is_cancelled_and_retried(job, configure):
    configure(TIMEOUT_GRACE=0.5)
    cleaned_up = []

    @job("slow_async", timeout=0.3, max_attempts=2)
    async def slow_async():
        try:
            await asyncio.sleep(60)  # until it is cancelled
        finally:
            cleaned_up.append(1)

    enqueued = slow_async.enqueue()
    assert drain() == 0
    dead = DeadJob.objects.get(pk=enqueued.id)
    assert (dead.reason, dead.attempts) == ("timeout", 2)
    assert dead.error_type == "django_jobs.exceptions.RunTimedOut"
    assert cleaned_up == [1, 1]


def test_an_async_run_that_ended_at_its_timeout_is_retried_by_its_policy_and_waits_for_no_grace(job, configure):
    configure(TIMEOUT_GRACE=600)
    attempts = []

    @job("slow_async", timeout=0.2, max_attempts=2)
    async def slow_async(run: RunningJob):
        attempts.append(run.attempt)
        if run.attempt == 1:
            await asyncio.sleep(60)  # until it is cancelled

    enqueued = slow_async.enqueue()
    drain()
    assert get_job(enqueued.id).status == "succeeded"
    assert attempts == [1, 2]


def test_an_async_run_that_swallows_its_cancellation_may_still_succeed_within_the_grace(job):
    @job("polite", timeout=0.2)
    async def polite():
        try:
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            return "cleaned up"

    enqueued = polite.enqueue()
    drain()
    assert get_job(enqueued.id).result == "cleaned up"


def test_an_async_run_that_ignores_its_cancellation_loses_its_slot_after_the_grace(job, configure):
    configure(TIMEOUT_GRACE=0.3)
    late = asyncio.Event()
    ignoring = threading.Event()

    @job("stubborn", timeout=0.2, max_attempts=1)
    async def stubborn():
        await ignore_cancellation(late, ignoring)
        return "late"

    enqueued = stubborn.enqueue()
    with running_worker(concurrency=1) as worker:
        assert ignoring.wait(10)
        wait_for(lambda: get_job(enqueued.id).status == "dead")
        late.set()
    assert get_job(enqueued.id).reason == "timeout"
    assert worker.code in (0, 70)


def test_a_thread_past_its_timeout_gives_up_its_slot_at_once(job, release):
    @job("hangs", timeout=0.3)
    def hangs():
        release.wait(60)

    @job("fine")
    def fine():
        return "fine"

    hanging, waiting = hangs.using(priority=5).enqueue(), fine.enqueue()
    with running_worker(concurrency=1):
        wait_for(lambda: get_job(waiting.id).status == "succeeded")
        info = get_job(hanging.id)
        assert (info.status, info.attempts) == ("failed_retrying", 1)
        release.set()


def test_a_timed_out_thread_is_retried_no_earlier_than_the_grace(job, release, configure):
    configure(TIMEOUT_GRACE=600)

    @job("hangs", timeout=0.2)
    def hangs():
        release.wait(60)

    enqueued = hangs.enqueue()
    with running_worker():
        info = wait_for(lambda: (found := get_job(enqueued.id)).status == "failed_retrying" and found)
        assert (info.next_attempt_at - info.enqueued_at).total_seconds() >= 600
        release.set()


def test_the_late_result_of_a_timed_out_thread_changes_nothing(job, release, configure):
    configure(TIMEOUT_GRACE=600)
    came_back = threading.Event()

    @job("late", timeout=0.2)
    def late(run: RunningJob):
        release.wait(60)
        run.report(rows=1)
        run.progress(1.0)
        came_back.set()
        return "late"

    enqueued = late.enqueue()
    with running_worker():
        wait_for(lambda: get_job(enqueued.id).status == "failed_retrying")
        release.set()
        assert came_back.wait(10)
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, info.result) == ("failed_retrying", 1, None)


def test_a_process_with_a_stuck_thread_ends_with_its_own_exit_code_and_hands_the_rest_back(job, release, configure):
    configure(TIMEOUT_GRACE=0.2, SHUTDOWN_TIMEOUT=1)

    @job("stuck", timeout=0.2)
    def stuck():
        release.wait(60)

    @job("patient")
    def patient(run: RunningJob):
        release.wait(60)

    waiting, hanging = patient.enqueue(), stuck.using(max_attempts=1).enqueue()
    with running_worker(concurrency=2) as worker:
        wait_for(lambda: not worker.alive, timeout=20)
        assert worker.code == 70
    assert get_job(hanging.id).reason == "timeout"
    assert Job.objects.get(pk=waiting.id).attempts == 0
    release.set()


def test_a_process_with_a_stuck_thread_that_is_told_to_end_lets_the_others_end(job, release, configure, caplog):
    """A deploy's first signal finds it ending already."""
    configure(TIMEOUT_GRACE=0.2, SHUTDOWN_TIMEOUT=30)
    finish = threading.Event()

    @job("stuck", timeout=0.2, max_attempts=1)
    def stuck():
        release.wait(60)

    @job("patient")
    def patient():
        assert finish.wait(60)

    waiting, _ = patient.enqueue(), stuck.enqueue()
    with running_worker(concurrency=2) as worker:
        wait_for(lambda: "have not ended since" in caplog.text, timeout=20)
        worker.stop()
        worker.wait_for_turns(5)
        finish.set()
        assert worker.join(20) == 70
    assert (get_job(waiting.id).status, get_job(waiting.id).attempts) == ("succeeded", 1)
    release.set()


def test_a_stuck_thread_is_noticed_although_its_worker_is_asleep(job, release, configure):
    configure(TIMEOUT_GRACE=0.5, POLL_EVERY=600, POLL_EVERY_UNPROVEN=600)

    @job("stuck", timeout=0.2, max_attempts=1)
    def stuck():
        release.wait(60)

    stuck.enqueue()
    with running_worker() as worker:
        wait_for(lambda: not worker.alive, timeout=20)
        assert worker.code == 70
    release.set()


def test_a_thread_that_comes_back_within_the_grace_does_not_end_the_process(job, configure):
    configure(TIMEOUT_GRACE=5)
    looked = threading.Event()

    @job("overruns", timeout=0.2, max_attempts=1)
    def overruns():
        looked.wait(60)

    enqueued = overruns.enqueue()
    with running_worker() as worker:
        wait_for(lambda: get_job(enqueued.id).status == "dead")
        looked.set()
    assert worker.code == 0


def test_without_a_timeout_a_run_may_take_as_long_as_it_likes(job, configure):
    configure(LEASE=1, TIMEOUT=None)
    ended = threading.Event()
    runs = []

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        ended.wait(1.5)
        return run.deadline is None

    enqueued = long.enqueue()
    drain()
    assert get_job(enqueued.id).result is True
    assert runs == [1]


def test_the_default_timeout_of_the_settings_applies_and_a_run_knows_its_deadline(job, release, configure):
    configure(TIMEOUT=0.3, TIMEOUT_GRACE=600)
    seen = []

    @job("defaulted")
    def defaulted(run: RunningJob):
        seen.append(run.deadline)
        release.wait(60)

    enqueued = defaulted.enqueue()
    with running_worker():
        wait_for(lambda: get_job(enqueued.id).status == "failed_retrying")
        release.set()
    assert seen[0] is not None
