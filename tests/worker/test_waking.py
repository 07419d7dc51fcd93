"""An idle worker starts a job as soon as it is committed, and no wake-up is lost."""

import os
import random
import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from django_jobs import RunningJob, enqueue, get_job
from django_jobs.engines.postgresql import sleeping
from django_jobs.engines.postgresql.connecting import OwnConnection
from django_jobs.engines.postgresql.sleeping import Sleeping
from django_jobs.models import Job, JobHistory
from tests.engines.support import claim, own_session
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


def advisory_locks():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database "
            "WHERE locktype = 'advisory' AND datname = current_database()"
        )
        return cursor.fetchone()[0]


@on_postgresql
@pytest.mark.parametrize("why", ["LISTEN is off", "nothing arrives"])
def test_a_worker_that_cannot_be_notified_polls_says_so_once_and_never_lies_down(
    noop, configure, caplog, monkeypatch, why
):
    configure(LISTEN=why != "LISTEN is off", POLL_EVERY_UNPROVEN=0.2)
    if why == "nothing arrives":
        deafen(monkeypatch)
    lay_down = []
    monkeypatch.setattr(Sleeping, "lie_down", lambda session, queues: lay_down.append(queues))
    with running_worker() as worker:
        for _ in range(3):
            enqueued = noop.enqueue()
            wait_for(lambda enqueued=enqueued: get_job(enqueued.id).status == "succeeded")
        assert advisory_locks() == 0
        assert worker.posture == "awake"
    assert not lay_down
    assert len([record for record in caplog.records if "polling every 0.2 s" in record.getMessage()]) == 1


def deafen(monkeypatch):
    """As behind a pooler that tells the server's process number and keeps notifications to itself."""
    real = OwnConnection.execute

    def execute(connection, statement, *arguments, **options):
        listens = isinstance(statement, str) and statement.startswith("LISTEN")
        return real(connection, "SELECT 1" if listens else statement, *arguments, **options)

    monkeypatch.setattr(OwnConnection, "execute", execute)
    monkeypatch.setattr(sleeping, "PROOF_SECONDS", 0.1)


@on_postgresql
@pytest.mark.parametrize("listens", [True, False])
def test_only_who_is_to_listen_listens_and_keeps_plans(listens):
    with own_session(listen=listens) as session:
        assert session.can_listen() is listens
        session.outstanding(["default"], timedelta(0))
        channels = session._connection.execute("SELECT pg_listening_channels()").fetchall()
        assert len(channels) == listens
        assert (session._connection.prepare_threshold is not None) is listens


@on_postgresql
def test_a_session_that_accepts_listen_and_hears_nothing_counts_as_no_session_of_ours(monkeypatch):
    deafen(monkeypatch)
    with own_session() as session:
        assert session.can_listen() is False
        assert claim(session) == []
        assert session._connection.prepare_threshold is None
        assert session._connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


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
