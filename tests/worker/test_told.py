"""Who is told what: a run that no longer counts hears of it, and one that never may start does not start."""

import asyncio
import threading
from types import SimpleNamespace
from uuid import uuid4

import pytest

from django_jobs import RunningJob, Snooze, get_job, retry_dead
from django_jobs.engines.values import ClaimedJob
from django_jobs.exceptions import InvalidOption
from django_jobs.models import Job, JobCount
from django_jobs.registry import registry
from django_jobs.worker import hygiene
from django_jobs.worker.executor import Executor
from django_jobs.worker.running import Run
from tests.waiting import wait_for
from tests.worker.embedded import running_worker


def test_a_thread_that_overran_its_timeout_is_told_that_its_lease_is_lost(job, configure):
    configure(TIMEOUT_GRACE=20)
    told, started = threading.Event(), threading.Event()

    @job("overrunning", timeout=0.3, max_attempts=1)
    def overrunning(run: RunningJob):
        started.set()
        wait_for(run.lease_lost, timeout=15)
        told.set()

    overrunning.enqueue()
    with running_worker():
        assert started.wait(10)
        assert told.wait(15)


def test_an_async_run_whose_lease_is_lost_is_cancelled_and_changes_nothing(job, configure):
    configure(LEASE=1)
    started, cancelled = threading.Event(), threading.Event()

    @job("robbed")
    async def robbed(run: RunningJob):
        if run.attempt > 1:
            return "the second"
        started.set()
        try:
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            assert run.lease_lost()
            cancelled.set()
            raise

    enqueued = robbed.enqueue()
    with running_worker() as worker:
        assert started.wait(15)
        row = Job.objects.filter(pk=enqueued.id, status="processing")
        wait_for(lambda: row.update(status="pending", lease_token=None, locked_until=None, locked_by=""))
        assert cancelled.wait(15)
        Job.objects.filter(pk=enqueued.id, status="pending").update(attempts=1)
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        wait_for(lambda: not len(worker.process.held))
    assert get_job(enqueued.id).result == "the second"
    assert JobCount.objects.get(outcome="stale").count == 1


@pytest.mark.parametrize("mark", ["lost", "ended"])
def test_a_run_that_no_longer_counts_is_not_started(job, mark):
    called = []

    @job("never_started")
    def never_started():
        called.append(1)

    run = Run(
        ClaimedJob(uuid4(), 1, "never_started", "{}", "default", 0, "", 1, 5, 0, "{}", False),
        registry.get("never_started"),
    )
    setattr(run, mark, True)
    assert Executor(lambda: 0, lambda: True).run(run, rested=True) is None
    assert called == []


def test_a_driver_that_is_neither_postgresql_nor_sqlite_is_not_asked_for_its_transaction(monkeypatch):
    other = SimpleNamespace(
        alias="legacy",
        vendor="mysql",
        connection=object(),
        in_atomic_block=False,
        get_autocommit=lambda: True,
        settings_dict={"OPTIONS": {}, "AUTOCOMMIT": True},
        close_if_unusable_or_obsolete=lambda: None,
    )
    monkeypatch.setattr(hygiene, "connections", SimpleNamespace(all=lambda initialized_only: [other]))
    assert hygiene.clean_up() == ""


@pytest.mark.parametrize("pause", ["5 minutes", None, True])
def test_a_snooze_for_what_is_no_time_is_an_error(pause):
    with pytest.raises(TypeError, match="timedelta or a number of seconds"):
        Snooze(for_=pause)


@pytest.mark.parametrize("delay", [5, "soon"])
@pytest.mark.django_db
def test_dead_jobs_are_not_retried_after_what_is_no_time(delay):
    with pytest.raises(InvalidOption, match="delay must be a timedelta"):
        retry_dead([uuid4()], delay=delay)
