"""This machine's clock is set back or forward: a worker waits by the monotonic clock, or by the database's."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from django_jobs import RunningJob, clock, create_schedule, get_job, ids
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.models import ScheduleSlot
from tests.operations.schedules import database_now
from tests.waiting import wait_for
from tests.worker.embedded import running_worker

HOUR = timedelta(hours=1)


@pytest.fixture
def set_forward(monkeypatch):
    real = time.time, time.time_ns
    monkeypatch.setattr(ids, "_last", ids._last)  # ids only grow: those of later tests would be of the future

    def set_forward(by):
        monkeypatch.setattr(time, "time", lambda: real[0]() + by.total_seconds())
        monkeypatch.setattr(time, "time_ns", lambda: real[1]() + int(by.total_seconds() * 1e9))
        monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + by)

    return set_forward


@pytest.fixture
def set_back(set_forward):
    return lambda: set_forward(-HOUR)


@pytest.fixture
def renewals(monkeypatch):
    """One item for each renewal that any worker asked for."""
    session_type = type(open_session(EngineConfig(alias="default")))
    real, asked = session_type.renew, []

    def renew(self, leases):
        asked.append(leases)
        return real(self, leases)

    monkeypatch.setattr(session_type, "renew", renew)
    return asked


def test_renewals_go_on_and_nobody_takes_the_job(job, configure, set_back, renewals):
    configure(LEASE=1)
    runs, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        release.wait(30)

    enqueued = long.enqueue()
    with running_worker(), running_worker():
        wait_for(lambda: runs)
        set_back()
        so_far = len(renewals)
        wait_for(lambda: len(renewals) > so_far + 5)
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    assert runs == [1]


def test_time_outs_retries_and_due_jobs_come_in_time(job, set_back):
    attempts = []

    @job("slow", timeout=0.3, max_attempts=2)
    async def slow(run: RunningJob):
        attempts.append(run.attempt)
        if run.attempt == 1:
            await asyncio.sleep(60)  # until it is cancelled

    @job("quick")
    def quick():
        pass

    with running_worker():
        before = quick.enqueue()
        wait_for(lambda: get_job(before.id).status == "succeeded")
        set_back()
        jobs = [slow.enqueue(), quick.enqueue(), quick.using(delay=timedelta(seconds=0.3)).enqueue()]
        wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in jobs), timeout=20)
    assert attempts == [1, 2]


@pytest.mark.parametrize("by", [-2 * HOUR, 2 * HOUR, 72 * HOUR], ids=str)
def test_schedules_fire_each_second_once_and_none_early(job, set_forward, by):
    @job("tick")
    def tick():
        pass

    def slots():
        return list(ScheduleSlot.objects.order_by("slot").values_list("slot", flat=True))

    create_schedule("tick", type=tick, every=timedelta(seconds=1), catch_up="all")
    with running_worker():
        wait_for(lambda: len(slots()) >= 2)
        set_forward(by)
        before = len(slots())
        wait_for(lambda: len(slots()) >= before + 4, timeout=30)
        fired, now = slots(), database_now()
    assert fired[-1] <= now
    assert fired == [fired[0] + timedelta(seconds=number) for number in range(len(fired))]
