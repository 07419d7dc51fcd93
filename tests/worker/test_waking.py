"""An idle worker starts a job as soon as it is committed, and no wake-up is lost."""

import os
import random
import threading
import time

import pytest
from django.db import connection, connections, transaction

from django_jobs import RunningJob, enqueue, get_job
from django_jobs.models import Job, JobHistory
from tests.factories import JobFactory
from tests.operations.support import on_postgresql
from tests.waiting import wait_for
from tests.worker.embedded import running_worker

# Longer than any test may take: whoever waits for it has lost a wake-up.
NEVER = 600
STRESS_SECONDS = float(os.environ.get("WAKE_STRESS_SECONDS", "4"))


@pytest.fixture(autouse=True)
def no_safety_net(configure):
    """Neither polls, nor a leader that sees jobs waiting beside sleepers."""
    configure(POLL_EVERY=NEVER, POLL_EVERY_UNPROVEN=NEVER, STAGE_EVERY=NEVER, RESCUE_EVERY=NEVER, LEASE=6 * NEVER)


@pytest.fixture
def noop(job):
    @job("noop")
    def noop(run: RunningJob):
        return time.monotonic()

    return noop


def wait_until_asleep(*workers):
    if connection.vendor == "postgresql":
        wait_for(lambda: all(worker.posture == "asleep" for worker in workers))


def test_an_idle_worker_is_woken_by_an_enqueue_in_autocommit(noop):
    with running_worker() as worker:
        for _ in range(5):
            wait_until_asleep(worker)
            enqueued = noop.enqueue()
            wait_for(lambda enqueued=enqueued: get_job(enqueued.id).status == "succeeded")


def test_an_idle_worker_is_woken_by_the_commit_not_by_the_enqueue(noop):
    with running_worker() as worker:
        wait_until_asleep(worker)
        with transaction.atomic():
            enqueued = noop.enqueue()
            with transaction.atomic():
                noop.enqueue()
        wait_for(lambda: JobHistory.objects.count() == 2)
        assert get_job(enqueued.id).status == "succeeded"


@on_postgresql
def test_a_job_whose_wake_up_was_never_sent_is_found_by_the_next_look(noop, configure):
    configure(STAGE_EVERY=0.05)
    with running_worker() as worker:
        wait_until_asleep(worker)
        job = JobFactory(type="noop")  # as if the enqueuer had died between its commit and the wake-up
        wait_for(lambda: get_job(job.id).status == "succeeded")


def test_a_rolled_back_savepoint_does_not_take_the_wake_up_with_it(noop):
    with running_worker() as worker:
        wait_until_asleep(worker)
        with transaction.atomic():
            try:
                with transaction.atomic():
                    noop.enqueue()
                    raise ValueError
            except ValueError:
                pass
            enqueued = noop.enqueue()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")


def test_a_bulk_wakes_as_many_workers_as_are_needed(job):
    both = threading.Barrier(4)

    @job("together")
    def together():
        both.wait(20)

    with running_worker(concurrency=2) as one, running_worker(concurrency=2) as two:
        wait_until_asleep(one, two)
        together.enqueue_many({} for _ in range(4))
        wait_for(lambda: JobHistory.objects.filter(status="succeeded").count() == 4)


@on_postgresql
def test_who_wakes_another_after_a_full_claim_is_no_sleeper_any_more(noop, monkeypatch):
    """It could be chosen itself, and nobody would be woken."""
    with running_worker(concurrency=1, maintenance=False) as worker:
        wait_until_asleep(worker)
        session, lying = worker.process._session, []
        real = session.wake

        def wake(queue):
            lying.append(session._lying)
            real(queue)

        monkeypatch.setattr(session, "wake", wake)
        JobFactory.create_batch(2, type="noop")  # without a wake-up
        worker.process.loop.poke.poke()
        wait_for(lambda: not Job.objects.exists())
    assert lying
    assert not any(lying)


def test_a_worker_whose_slots_are_full_does_not_swallow_wake_ups_of_others(job):
    release = threading.Event()

    @job("long")
    def long():
        assert release.wait(60)

    @job("short")
    def short():
        pass

    with running_worker(concurrency=1) as one, running_worker(concurrency=1) as two:
        wait_until_asleep(one, two)
        for _ in range(20):
            release.clear()
            long_one = long.enqueue()
            wait_for(lambda: any(len(worker.process.held) for worker in (one, two)))
            short_one = short.enqueue()
            wait_for(lambda short_one=short_one: get_job(short_one.id).status == "succeeded")
            release.set()
            wait_for(lambda long_one=long_one: get_job(long_one.id).status == "succeeded")


def test_a_worker_that_is_stopping_does_not_swallow_wake_ups_of_others(job):
    release = threading.Event()

    @job("long")
    def long():
        assert release.wait(60)

    @job("short")
    def short():
        pass

    with running_worker(concurrency=4) as stopping:
        long.enqueue()
        wait_for(lambda: len(stopping.process.held) == 1)
        wait_until_asleep(stopping)
        with running_worker(concurrency=4) as staying:
            wait_until_asleep(staying)
            stopping.stop()
            for _ in range(20):
                enqueued = short.enqueue()
                wait_for(lambda enqueued=enqueued: get_job(enqueued.id).status == "succeeded")
        release.set()


def test_a_delayed_job_starts_when_it_is_due_although_everybody_sleeps(noop, configure):
    from datetime import timedelta

    configure(STAGE_EVERY=0.05)
    with running_worker() as worker:
        wait_until_asleep(worker)
        enqueued = noop.using(delay=timedelta(seconds=1)).enqueue()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")


def test_a_retried_job_starts_again_although_everybody_sleeps_and_nobody_looks(job):
    @job("second_time")
    def second_time(run: RunningJob):
        if run.attempt == 1:
            raise ValueError("first")

    with running_worker() as worker:
        wait_until_asleep(worker)
        enqueued = second_time.enqueue()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")


def test_jobs_that_were_lost_before_are_shared_by_workers_that_sleep(job, configure):
    configure(STAGE_EVERY=0.05)
    together = threading.Barrier(3)

    @job("lost")
    def lost():
        together.wait(20)

    with running_worker() as one, running_worker() as two, running_worker() as three:
        wait_until_asleep(one, two, three)
        JobFactory.create_many(3, type="lost", lost_runs=1, due=True)
        wait_for(lambda: JobHistory.objects.filter(status="succeeded").count() == 3)


class Producer(threading.Thread):
    """Bursts, pauses, slow transactions and rollbacks. Remembers what it committed."""

    def __init__(self, end):
        super().__init__(name="producer")
        self.end = end
        self.committed = 0
        self.error = None

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.produce()
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def produce(self):
        kind = random.random()
        queue = random.choice(["default", "urgent", "bulk"])
        try:
            with transaction.atomic():
                count = random.choice([1, 1, 1, 2, 8])
                for _ in range(count):
                    enqueue("noop", queue=queue)
                if kind < 0.3:
                    time.sleep(0.1)  # a business transaction that commits late, which is what is tried
                if kind > 0.9:
                    raise ValueError
            self.committed += count
        except ValueError:
            pass
        time.sleep(random.choice([0, 0.001, 0.02, 0.05, 0.1]))  # bursts as they come, which is what is tried


def test_no_wake_up_is_lost_under_bursts_and_slow_commits(job):
    @job("noop")
    def noop():
        pass

    producers = [Producer(time.monotonic() + STRESS_SECONDS) for _ in range(3)]
    with (
        running_worker(concurrency=2),
        running_worker(queues="urgent:1,default:1,bulk:1"),
        running_worker(concurrency=2),
    ):
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        # Nobody polls: what is not running by now was missed.
        wait_for(lambda: not Job.objects.exists(), timeout=10, message="the last jobs to be found without a poll")
    assert not [producer.error for producer in producers if producer.error]
    assert JobHistory.objects.filter(status="succeeded").count() == sum(producer.committed for producer in producers)


def test_jobs_that_were_lost_before_run_one_by_one_without_waiting_for_a_poll(job, configure):
    configure(STAGE_EVERY=0.05)
    together, most = [], []

    @job("lost")
    def lost():
        together.append(1)
        most.append(len(together))
        time.sleep(0.1)  # long enough for another to begin, if it may
        together.pop()

    with running_worker() as worker:
        wait_until_asleep(worker)
        for queue in ("default", "urgent", "bulk", "default"):
            JobFactory(type="lost", queue=queue, lost_runs=1, due=True)
        wait_for(lambda: not Job.objects.exists())
    assert most == [1, 1, 1, 1]
