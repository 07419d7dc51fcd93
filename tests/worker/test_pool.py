"""Django's own connection pool: handlers wait for each other in it, and nothing of the worker waits with them."""

import threading
import time
from datetime import timedelta

from django_jobs import RunningJob, get_job
from django_jobs.models import Job, JobCount, JobHistory
from tests.app.models import Mark
from tests.factories import JobFactory
from tests.operations.support import on_postgresql
from tests.waiting import wait_for
from tests.worker.elsewhere import pool_of
from tests.worker.embedded import running_worker

pytestmark = on_postgresql


def test_every_kind_of_run_gives_its_place_in_the_pool_back(job):
    @job("writes")
    def writes(n: int):
        Mark.objects.create(label=str(n))

    @job("writes_atomic", atomic=True)
    def writes_atomic(n: int):
        Mark.objects.create(label=str(n))

    @job("writes_async")
    async def writes_async(n: int):
        await Mark.objects.acreate(label=str(n))

    @job("fails", max_attempts=1)
    def fails(n: int):
        Mark.objects.create(label=str(n))
        raise ValueError(n)

    for handle in (writes, writes_atomic, writes_async, fails):
        handle.enqueue_many({"n": n} for n in range(25))
    with pool_of(2) as pool, running_worker(concurrency=10):
        wait_for(lambda: not Job.objects.exists(), timeout=40)
        wait_for(lambda: pool.get_stats()["pool_available"] == pool.get_stats()["pool_size"])
        assert pool.get_stats()["pool_size"] <= 2
    assert Mark.objects.count() == 100
    assert JobHistory.objects.count() == 75


def test_while_handlers_wait_for_the_pool_leases_are_renewed_and_maintenance_goes_on(job, configure):
    configure(LEASE=1)
    release, began = threading.Event(), []

    @job("holds", queue="default")
    def holds(run: RunningJob):
        began.append(run.attempt)
        Mark.objects.create(label="holds")
        assert release.wait(60)

    @job("noop")
    def noop():
        pass

    with pool_of(2) as pool, running_worker(queues="default:10,urgent:1") as worker:
        enqueued = [holds.enqueue() for _ in range(10)]
        wait_for(lambda: len(began) == 10 and pool.get_stats().get("requests_waiting") == 8, timeout=20)
        lost = JobFactory(type="noop", queue="urgent", lapsed=True)
        due = noop.using(delay=timedelta(seconds=0.5), queue="urgent").enqueue()
        end = time.monotonic() + 3
        wait_for(lambda: time.monotonic() > end, message="three leases to pass")
        assert get_job(lost.id).status == get_job(due.id).status == "succeeded", "rescued, and staged"
        wait_for(lambda: JobCount.objects.filter(process=worker.process.id).exists(), timeout=20, message="a report")
        assert pool.get_stats()["requests_waiting"] == 8, "and all that while the pool was empty"
        release.set()
        wait_for(lambda: not Job.objects.exists(), timeout=20)
    assert began == [1] * 10
    assert {get_job(one.id).status for one in enqueued} == {"succeeded"}
