"""What async handlers hand to threads: of no concern to other runs, and not forgotten when it never returns."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from django_jobs import get_job
from django_jobs.models import DeadJob
from tests.app.models import Mark
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker

# More than the threads of asyncio's own pool.
MANY = 40

WAYS = {
    "to_thread": asyncio.to_thread,
    "sync_to_async": lambda call, *arguments: sync_to_async(call, thread_sensitive=False)(*arguments),
}


@pytest.fixture
def release():
    """Lets calls that hang come back at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(params=WAYS)
def in_thread(request):
    return WAYS[request.param]


def test_calls_that_hang_in_threads_keep_no_other_run_waiting(job, release, in_thread, configure):
    configure(TIMEOUT_GRACE=600)
    hanging = []

    @job("hangs", timeout=0.5, max_attempts=1)
    async def hangs():
        await in_thread(hang)

    def hang():
        hanging.append(1)
        release.wait(60)

    @job("quick")
    async def quick():
        return await in_thread(str, 5)

    with running_worker(concurrency=MANY + 1):
        hangs.enqueue_many([{}] * MANY)
        wait_for(lambda: len(hanging) == MANY, message="all of them to hang at once")
        beside = quick.enqueue()
        wait_for(lambda: get_job(beside.id).status == "succeeded")
        wait_for(lambda: DeadJob.objects.count() == MANY, timeout=20)
        after = quick.enqueue()
        wait_for(lambda: get_job(after.id).status == "succeeded")
        release.set()
    assert get_job(after.id).result == "5"


@pytest.mark.parametrize("thread_sensitive", [True, False])
def test_a_call_that_never_returns_to_its_timed_out_run_ends_the_process(job, release, configure, thread_sensitive):
    configure(TIMEOUT_GRACE=0.3, POLL_EVERY=600, POLL_EVERY_UNPROVEN=600)

    @job("hangs", timeout=0.2, max_attempts=1)
    async def hangs():
        await sync_to_async(release.wait, thread_sensitive=thread_sensitive)(60)

    enqueued = hangs.enqueue()
    with running_worker() as worker:
        wait_for(lambda: not worker.alive, timeout=20)
    assert worker.code == 70
    assert get_job(enqueued.id).reason == "timeout"
    release.set()


def test_a_call_that_returns_within_the_grace_does_not_end_the_process(job, release, in_thread, configure):
    configure(TIMEOUT_GRACE=5)

    @job("hangs", timeout=0.2, max_attempts=1)
    async def hangs():
        await in_thread(release.wait, 60)

    enqueued = hangs.enqueue()
    with running_worker() as worker:
        wait_for(lambda: get_job(enqueued.id).status == "dead")
        (run,) = worker.process.loop.overruns._overdue
        assert not run.is_gone
        release.set()
        wait_for(lambda: run.is_gone)
    assert worker.code == 0


def test_connections_that_such_calls_open_are_closed_with_them(job, in_thread):
    wrappers = []

    @job("asks")
    async def asks():
        await asyncio.gather(*(in_thread(ask) for _ in range(3)))

    def ask():
        Mark.objects.count()
        wrappers.append(connections["default"])
        assert wrappers[-1].connection is not None

    enqueued = asks.enqueue()
    drain()
    assert get_job(enqueued.id).status == "succeeded"
    assert [wrapper.connection for wrapper in wrappers] == [None] * 3


def test_a_task_that_outlives_its_run_can_still_use_threads(job):
    tasks, answers, ended = [], [], threading.Event()

    @job("leaves_task")
    async def leaves_task():
        tasks.append(asyncio.create_task(later()))

    async def later():
        while not ended.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        answers.append(await asyncio.to_thread(str, 5))

    enqueued = leaves_task.enqueue()
    with running_worker():
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        ended.set()
        wait_for(lambda: answers == ["5"])
