"""Leases: renewed as long as the process lives, whatever its handlers, its server and its loop do."""

import asyncio
import threading
import time
from datetime import timedelta
from itertools import pairwise
from unittest.mock import Mock

import psycopg
import pytest
from django.utils import timezone

from django_jobs import RunningJob, clock, get_job
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.postgresql import connected
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.engines.values import Renewal
from django_jobs.ids import uuid7
from django_jobs.models import Job, Leadership
from django_jobs.worker import renewer
from django_jobs.worker.prefetch import Prefetch
from tests.operations.support import on_postgresql
from tests.waiting import wait_for
from tests.worker.embedded import running_worker


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
        await asyncio.sleep(0.1)  # in the loop when the other one blocks it

    with running_worker():
        jobs = [waits.enqueue(), starts_a_task.enqueue()]
        wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in jobs))
    (warning,) = [record.getMessage() for record in caplog.records if "event loop has been blocked" in record.msg]
    assert "(starts_a_task)" in warning


def test_a_busy_thread_does_not_cost_other_runs_their_leases(job, runs, configure):
    configure(LEASE=3)
    end = time.monotonic() + 6.5

    @job("burns")
    def burns(run: RunningJob):
        runs.append(run.attempt)
        while time.monotonic() < end:
            pass

    burns.enqueue_many({} for _ in range(4))
    with running_worker(concurrency=4), running_worker():
        wait_for(lambda: not Job.objects.exists(), timeout=30)
    assert runs == [1, 1, 1, 1]


def test_a_renewal_that_fails_is_tried_again_before_the_lease_runs_out(job, runs, configure, monkeypatch):
    """Four in a row: with only one in each third of the lease the fifth would come too late."""
    configure(LEASE=4)
    session_type = type(open_session(EngineConfig(alias="default")))
    real, failures, renewed = session_type.renew, [], []

    def renew(self, leases):
        if len(failures) < 4:
            failures.append(1)
            raise EngineUnavailable("not now")
        renewal = real(self, leases)
        renewed.extend(renewal.renewed)
        return renewal

    monkeypatch.setattr(session_type, "renew", renew)
    release = threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(60)

    enqueued = long.enqueue()
    with running_worker(), running_worker():
        wait_for(lambda: renewed or len(runs) > 1, timeout=30)
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    assert (runs, len(failures)) == ([1], 4)


def test_renewals_pause_after_a_success_hasten_after_a_failure_and_queue_again_at_once_for_a_locked_row(monkeypatch):
    """Who is not in the queue when the lock goes may find the rescuer there."""
    monkeypatch.setattr(renewer, "RETRY_SECONDS", 100.0)
    monkeypatch.setattr(clock, "monotonic", lambda: 0.0)
    results = [Renewal(renewed=(), busy=busy, lost=(), cancelled=()) for busy in ((), (uuid7(),), (uuid7(),), ())]
    results.insert(1, EngineUnavailable("not now"))
    session, waits = Mock(renew=Mock(side_effect=results)), []
    job = Mock(id=uuid7(), token=1)
    held = Mock(snapshot=lambda: [(None, Mock(job=job))])
    under_test = renewer.Renewer(lambda: session, held, timedelta(hours=1), Mock())
    under_test._stop = Mock(wait=lambda seconds: waits.append(seconds) or len(waits) > len(results))
    under_test._serve()
    assert waits == [3600, 3600, 100, 0, 0, 3600]


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
        pulse = worker.process.pulses["renewer"]
        wait_for(lambda: pulse.session is not None and pulse.session.generation == 1)
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


def test_only_what_runs_waits_for_a_slot_or_is_not_settled_yet_is_renewed(job, monkeypatch):
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


def test_what_waits_unstarted_in_a_process_is_renewed_until_it_goes_back(job, monkeypatch):
    session_type = type(open_session(EngineConfig(alias="default")))
    real, named, ahead = session_type.renew, [], [2]

    def renew(self, leases):
        named.append(set(leases))
        return real(self, leases)

    monkeypatch.setattr(session_type, "renew", renew)
    monkeypatch.setattr(Prefetch, "allowance", lambda self, ended: ahead[0])
    started, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob):
        started.append(run.id)
        assert release.wait(60)

    enqueued = {one.id for one in long.enqueue_many([{}] * 3)}
    with running_worker(concurrency=1):
        wait_for(lambda: enqueued in named, timeout=20)
        ahead[0] = 0
        wait_for(lambda: named[-1] == set(started), timeout=20)
        waited = Job.objects.exclude(pk__in=started).values_list("attempts", "lease_token")
        assert list(waited) == [(0, None)] * 2
        ahead[0] = 2
        release.set()
        wait_for(lambda: not Job.objects.exists(), timeout=20)
