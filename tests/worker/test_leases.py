"""Leases: renewed as long as the process lives, rescued when it does not."""

import asyncio
import threading
import time
from datetime import timedelta
from itertools import pairwise

import psycopg
import pytest
from django.utils import timezone

from django_jobs import RunningJob, cancel, clock, get_job
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.postgresql import connected
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.engines.values import ClaimRequest
from django_jobs.models import DeadJob, Job, JobCount, Leadership, Worker
from tests.factories import JobFactory
from tests.operations.support import on_postgresql
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


@pytest.fixture(autouse=True)
def short_leases(configure):
    configure(LEASE=1)


@pytest.fixture
def runs():
    return []


def test_a_run_of_several_leases_runs_once_although_others_look_for_work(job, runs):
    release = threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        release.wait(2.5)

    enqueued = long.enqueue()
    with running_worker(), running_worker(), running_worker():
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    assert runs == [1]


def test_an_async_handler_that_blocks_the_event_loop_runs_once_and_is_named_in_a_warning(job, runs, caplog):
    @job("blocks_the_loop")
    async def blocks_the_loop(run: RunningJob):
        runs.append(run.attempt)
        time.sleep(3)  # noqa: ASYNC251 - the very mistake that is looked for

    enqueued = blocks_the_loop.enqueue()
    with running_worker(), running_worker():
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    assert runs == [1]
    assert "event loop has been blocked" in caplog.text
    assert "(blocks_the_loop)" in caplog.text


def test_a_task_that_a_handler_started_blocks_the_event_loop_and_the_warning_says_whose_it_may_be(job, caplog):
    @job("starts_a_task")
    async def starts_a_task():
        async def blocks():
            time.sleep(3)  # noqa: ASYNC251 - the very mistake that is looked for

        await asyncio.create_task(blocks())

    @job("waits")
    async def waits():
        await asyncio.sleep(0.1)

    with running_worker():
        jobs = [waits.enqueue(), starts_a_task.enqueue()]
        wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in jobs))
    (warning,) = [record.getMessage() for record in caplog.records if "event loop has been blocked" in record.msg]
    assert "(starts_a_task)" in warning


def test_a_busy_thread_does_not_cost_other_runs_their_leases(job, runs):
    end = time.monotonic() + 2.2

    @job("burns")
    def burns(run: RunningJob):
        runs.append(run.attempt)
        while time.monotonic() < end:
            pass

    burns.enqueue_many({} for _ in range(4))
    with running_worker(concurrency=4), running_worker():
        wait_for(lambda: not Job.objects.exists(), timeout=30)
    assert runs == [1, 1, 1, 1]


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


def test_a_renewal_that_fails_is_tried_again_before_the_lease_runs_out(job, runs, configure, monkeypatch):
    configure(LEASE=3)
    failures = []
    config = EngineConfig(alias="default")
    session_type = type(open_session(config))
    real = session_type.renew

    def renew(self, leases):
        if len(failures) < 2:
            failures.append(1)
            raise EngineUnavailable("not now")
        return real(self, leases)

    monkeypatch.setattr(session_type, "renew", renew)
    release = threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        release.wait(5)

    enqueued = long.enqueue()
    with running_worker(), running_worker():
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    assert len(failures) == 2
    assert runs == [1]


@on_postgresql
def test_a_server_that_takes_no_more_connections_costs_no_lease(job, runs, configure, monkeypatch):
    """Whoever has one already can renew; so everybody has, before it is needed."""
    release = threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(60)

    def refuse(*_):
        raise psycopg.OperationalError("sorry, too many clients already")

    configure(LEASE=3)
    with running_worker() as worker:
        renewer = worker.process.pulses["renewer"]
        wait_for(lambda: renewer.session is not None and renewer.session.generation == 1)
        wait_for(Leadership.objects.exists)
        monkeypatch.setattr(connected, "connect", refuse)
        enqueued = long.enqueue()
        wait_for(lambda: runs)
        end = clock.monotonic() + 7
        wait_for(lambda: clock.monotonic() > end, message="more than two leases to go by")
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    assert runs == [1]


def test_renewals_begin_at_a_fixed_rate_however_long_each_takes(job, runs, configure, monkeypatch):
    configure(LEASE=3)
    session_type = type(open_session(EngineConfig(alias="default")))
    real, done, slow = session_type.renew, [], threading.Event()

    def renew(self, leases):
        slow.wait(0.5)  # a distant database
        renewal = real(self, leases)
        done.append(time.monotonic())
        return renewal

    monkeypatch.setattr(session_type, "renew", renew)
    release = threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(60)

    enqueued = long.enqueue()
    with running_worker():
        wait_for(lambda: len(done) >= 6, timeout=30)
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    gaps = sorted(later - earlier for earlier, later in pairwise(done))
    assert gaps[len(gaps) // 2] < 1.4, "a pause of a second after each of half a second"
    assert runs == [1]


def test_a_settling_that_takes_several_leases_costs_nobody_the_lease(job, runs, configure, monkeypatch):
    session_type = type(open_session(EngineConfig(alias="default")))
    real, stuck, go_on = session_type.tick, threading.Event(), threading.Event()

    def tick(self, outcomes, claims):
        if outcomes and not stuck.is_set():
            stuck.set()
            assert go_on.wait(60)
        return real(self, outcomes, claims)

    release = threading.Event()

    @job("short")
    def short(run: RunningJob):
        runs.append(("short", run.attempt))

    @job("long")
    def long(run: RunningJob):
        runs.append(("long", run.attempt))
        assert release.wait(60)

    with running_worker(concurrency=2):
        enqueued = [long.enqueue(), short.enqueue()]
        monkeypatch.setattr(session_type, "tick", tick)
        wait_for(stuck.is_set)
        with running_worker(queues="urgent"):
            outlived = [timezone.now() + timedelta(seconds=3)] * 2
            wait_for(lambda: leased_until(enqueued) > outlived, timeout=20, message="three leases to pass")
            go_on.set()
            release.set()
            wait_for(lambda: not Job.objects.exists(), timeout=20)
    assert sorted(runs) == [("long", 1), ("short", 1)]
    assert all(get_job(one.id).status == "succeeded" for one in enqueued)


def leased_until(enqueued):
    """When the leases of these jobs run out; nothing for those that have none."""
    ids = [one.id for one in enqueued]
    return list(Job.objects.filter(pk__in=ids, status="processing").values_list("locked_until", flat=True))


def test_only_runs_that_go_on_or_are_not_settled_yet_are_renewed(job, monkeypatch):
    session_type = type(open_session(EngineConfig(alias="default")))
    real, named = session_type.renew, []

    def renew(self, leases):
        named.append(set(leases))
        return real(self, leases)

    monkeypatch.setattr(session_type, "renew", renew)
    release = threading.Event()

    @job("short")
    def short():
        pass

    @job("long")
    def long():
        assert release.wait(60)

    with running_worker(concurrency=2):
        running = long.enqueue()
        for _ in range(3):
            ended = short.enqueue()
            wait_for(lambda ended=ended: get_job(ended.id).status == "succeeded")
        wait_for(lambda: len(named) > 1, timeout=20)
        named.clear()
        wait_for(lambda: len(named) > 2, timeout=20)
        release.set()
    assert {job_id for leases in named for job_id in leases} == {running.id}


@pytest.mark.parametrize("how", ["return", "raise", "retry", "snooze", "cancel", "bury", "timeout"])
def test_cancel_while_running_meets_every_ending(job, how):
    from django_jobs import Bury, Cancel, Retry, Snooze

    started, release = threading.Event(), threading.Event()
    endings = {
        "raise": ValueError("x"),
        "retry": Retry(after=timedelta(0)),
        "snooze": Snooze(for_=timedelta(0)),
        "cancel": Cancel("x"),
        "bury": Bury("x"),
    }

    @job("ends", timeout=1 if how == "timeout" else None)
    def ends():
        started.set()
        assert release.wait(30)
        if how in endings:
            raise endings[how]
        return "done"

    enqueued = ends.enqueue()
    with running_worker() as worker:
        assert started.wait(10)
        assert cancel(enqueued.id) == "requested"
        assert cancel(enqueued.id) == "requested"
        if how != "timeout":
            release.set()
        wait_for(lambda: get_job(enqueued.id).finished_at)
        assert worker.alive
        release.set()
    expected = "succeeded" if how == "return" else "cancelled"
    assert get_job(enqueued.id).status == expected
    assert cancel(enqueued.id) == ("too_late" if how == "return" else "cancelled")
    assert not Job.objects.exists()


def test_cancelling_around_the_moment_of_the_return_ends_in_a_documented_state(job):
    @job("noop")
    def noop():
        pass

    ids = []
    with running_worker():
        for _ in range(200):
            ids.append(noop.enqueue().id)
            cancel(ids[-1])
        wait_for(lambda: not Job.objects.exists())
    assert {get_job(job_id).status for job_id in ids} <= {"succeeded", "cancelled"}


def test_a_drain_outlives_a_rescue(job):
    @job("lost")
    def lost():
        return "rescued"

    row = JobFactory(type="lost", lapsed=True)
    drain()
    assert get_job(row.id).result == "rescued"
