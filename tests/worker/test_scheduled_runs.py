"""From a schedule to a run: the handler knows its slot, and what it enqueues does not."""

from datetime import UTC, datetime, timedelta

import pytest

from django_jobs import RunningJob, create_schedule, get_job, job_context, run_schedule_now
from django_jobs.exceptions import InvalidOption
from django_jobs.models import Job, Schedule, ScheduleSlot
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


@pytest.fixture
def seen():
    return []


@pytest.fixture
def digest(job, seen):
    @job("scheduled.child")
    def child(run: RunningJob):
        seen.append(("child", run.schedule, run.scheduled_for))

    @job("scheduled.digest")
    def digest(run: RunningJob, part: str):
        seen.append((part, run.schedule, run.scheduled_for, run.jitter, run.context))
        if part == "fan out":
            child.enqueue()

    return digest


def test_a_worker_fires_and_runs_and_the_run_knows_its_slot(digest, seen):
    create_schedule("tick", type=digest, payload={"part": "x"}, every=timedelta(seconds=1))
    with running_worker():
        wait_for(lambda: len(seen) >= 3, timeout=30)
    slots = list(ScheduleSlot.objects.filter(outcome="fired").order_by("slot"))
    assert [(s[1], s[2]) for s in seen] == [("tick", slot.slot) for slot in slots][: len(seen)]
    assert get_job(slots[0].job_id).status == "succeeded"


def test_every_attempt_knows_the_same_slot(job, seen):
    @job("scheduled.flaky", max_attempts=3)
    def flaky(run: RunningJob):
        seen.append((run.attempt, run.scheduled_for))
        if run.attempt < 3:
            raise ValueError("not yet")

    create_schedule("tick", type=flaky, every=timedelta(days=1))
    slot = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    Schedule.objects.update(next_run_at=slot)
    with running_worker():
        wait_for(lambda: len(seen) == 3, timeout=30)
    assert seen == [(1, slot), (2, slot), (3, slot)]


def test_a_worker_without_scheduler_fires_nothing(digest, seen):
    create_schedule("tick", type=digest, payload={"part": "x"}, every=timedelta(seconds=1))
    Schedule.objects.update(next_run_at=datetime(2026, 1, 1, tzinfo=UTC))
    digest.enqueue(part="by hand")
    drain(maintenance=False)
    assert [part for part, *_ in seen] == ["by hand"]
    assert not ScheduleSlot.objects.exists()


def test_jobs_that_the_run_enqueues_have_no_slot(digest, seen):
    create_schedule("tick", type=digest, payload={"part": "fan out"}, every=timedelta(days=1), jitter=timedelta(0))
    Schedule.objects.update(next_run_at=datetime(2026, 1, 1, tzinfo=UTC))
    with running_worker():
        wait_for(lambda: len(seen) == 2, timeout=30)
    assert seen[1] == ("child", None, None)


def test_run_now_has_a_schedule_but_no_slot(digest, seen):
    create_schedule("tick", type=digest, payload={"part": "x"}, cron="@yearly", jitter=timedelta(minutes=10))
    run_schedule_now("tick")
    drain()
    assert seen == [("x", "tick", None, timedelta(minutes=10), {})]


def test_the_jitter_is_the_schedules(digest, seen):
    create_schedule("tick", type=digest, payload={"part": "x"}, every=timedelta(days=1), jitter=timedelta(seconds=2))
    slot = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    Schedule.objects.update(next_run_at=slot)
    with running_worker():
        wait_for(lambda: seen, timeout=30)
    assert seen == [("x", "tick", slot, timedelta(seconds=2), {})]


def test_a_job_enqueued_by_other_means_has_none_of_it(digest, seen):
    with job_context(request_id="r1"):
        digest.enqueue(part="x")
    drain()
    assert seen == [("x", None, None, timedelta(0), {"request_id": "r1"})]


def test_nobody_else_can_claim_to_be_a_slot(digest):
    with pytest.raises(InvalidOption, match="reserved"):
        digest.using(context={"django_jobs.slot": "2026-01-01T00:00:00+00:00"}).enqueue(part="x")
    with (
        job_context(**{"django_jobs.slot": "2026-01-01T00:00:00+00:00"}),
        pytest.raises(InvalidOption, match="reserved"),
    ):
        digest.enqueue(part="x")
    assert not Job.objects.exists()
