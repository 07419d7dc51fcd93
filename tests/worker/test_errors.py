"""Errors of every kind end their job, and nothing but their job."""

import asyncio
from datetime import timedelta

import pytest

from django_jobs import RunningJob, get_job, retry_dead
from django_jobs.models import DeadJob, Job
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker

BASE_EXCEPTIONS = {
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "GeneratorExit": GeneratorExit(),
    "asyncio.exceptions.CancelledError": asyncio.CancelledError(),
    "TimeoutError": asyncio.TimeoutError(),  # noqa: UP041
    "BaseExceptionGroup": BaseExceptionGroup("many", [KeyboardInterrupt()]),
    "StopIteration": StopIteration(),
}


@pytest.mark.parametrize("name", BASE_EXCEPTIONS)
def test_a_base_exception_in_a_thread_fails_its_job_and_keeps_the_slot(job, name):
    @job("base_exception", max_attempts=1)
    def base_exception():
        raise BASE_EXCEPTIONS[name]

    @job("fine")
    def fine():
        return "fine"

    base_exception.enqueue_many({} for _ in range(50))
    drain(concurrency=2)
    assert set(DeadJob.objects.values_list("error_type", "reason")) == {(name, "exhausted")}
    assert DeadJob.objects.count() == 50


@pytest.mark.parametrize("name", BASE_EXCEPTIONS)
def test_a_base_exception_in_a_task_fails_its_job_and_keeps_the_slot(job, name):
    @job("base_exception_async", max_attempts=1)
    async def base_exception_async():
        await asyncio.sleep(0)  # another task may have its turn
        raise BASE_EXCEPTIONS[name]

    base_exception_async.enqueue_many({} for _ in range(50))
    drain(concurrency=2)
    expected = "RuntimeError" if name == "StopIteration" else name
    assert set(DeadJob.objects.values_list("error_type", "reason")) == {(expected, "exhausted")}
    assert DeadJob.objects.count() == 50


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()], ids=repr)
def test_an_exit_in_a_task_that_a_handler_started_does_not_end_the_event_loop(job, error):
    async def child():
        raise error

    @job("starts_child", max_attempts=1)
    async def starts_child():
        await asyncio.gather(child())

    @job("patient")
    async def patient():
        await asyncio.sleep(0.2)  # still going on when the other one fails
        return "went on"

    waiting = patient.enqueue()
    starts_child.enqueue()
    with running_worker() as worker:
        wait_for(DeadJob.objects.exists)
        wait_for(lambda: get_job(waiting.id).status == "succeeded")
        again = patient.enqueue()
        wait_for(lambda: get_job(again.id).result == "went on")
        assert worker.alive


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("cannot be printed")

    __repr__ = __str__


def endless_chain():
    error = ValueError("chained")
    error.__cause__ = KeyError("other")
    error.__cause__.__cause__ = error
    return error


HORRORS = {
    "20 MB": lambda: ValueError("x" * 20_000_000),
    "nul": lambda: ValueError("a\x00b"),
    "surrogate": lambda: ValueError("\ud800"),
    "unprintable": Unprintable,
    "endless chain": endless_chain,
    "group of 10,000": lambda: ExceptionGroup("many", [ValueError(n) for n in range(10_000)]),
    "percent": lambda: ValueError("100% %s %(x)d {0}"),
    "not hashable": lambda: type("E", (ValueError,), {"__hash__": None, "__eq__": lambda *_: 1 / 0})("odd"),
}


@pytest.mark.parametrize("horror", HORRORS)
@pytest.mark.parametrize("times", [1, 2])
def test_the_most_awkward_error_is_recorded(job, horror, times):
    @job("horror", max_attempts=times)
    def raise_horror():
        raise HORRORS[horror]()  # noqa: RSE102 - the call makes the error

    enqueued = raise_horror.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, len(info.errors)) == ("dead", times, times)
    assert info.reason == "exhausted"


def test_one_unrecordable_neighbour_does_not_spoil_a_batch(job):
    @job("mixed", max_attempts=1)
    def mixed(n: int):
        if n == 3:
            raise ValueError("a\x00\ud800b")
        return {"n": n, "odd": "\x00"}

    mixed.enqueue_many({"n": n} for n in range(20))
    drain()
    assert DeadJob.objects.count() == 1
    assert not Job.objects.exists()


def a_policy_that_raises(attempt, error):
    raise RuntimeError("the policy is broken")


def a_policy_that_exits(attempt, error):
    raise SystemExit("the policy is very broken")


@pytest.mark.parametrize(
    "policy",
    [
        a_policy_that_raises,
        a_policy_that_exits,
        lambda attempt, error: None,
        lambda attempt, error: "soon",
        lambda attempt, error: timedelta(days=-1),
        lambda attempt, error: timedelta.max,
        lambda: None,
    ],
    ids=["raises", "exits", "none", "text", "negative", "endless", "wrong-signature"],
)
def test_a_broken_retry_function_is_replaced_by_the_default_and_attempts_are_a_hard_cap(job, policy):
    @job("broken_policy", max_attempts=3, retry=policy)
    def broken_policy():
        raise ValueError("wrong")

    enqueued = broken_policy.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, info.last_error) == ("dead", 3, "wrong")


@pytest.mark.parametrize("stated", [600, timedelta(minutes=10), "600"], ids=repr)
def test_a_retry_after_of_the_far_side_is_a_lower_bound(job, stated):
    class TooMany(Exception):
        retry_after = stated

    @job("asks_to_wait")
    def asks_to_wait():
        raise TooMany("slow down")

    enqueued = asks_to_wait.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert timedelta(minutes=10) <= info.next_attempt_at - info.enqueued_at < timedelta(minutes=15)


def test_an_error_whose_attributes_explode_is_an_ordinary_failure(job):
    class Explosive(Exception):
        @property
        def retry_after(self):
            raise SystemExit("boom")

    @job("explosive", max_attempts=2)
    def explosive():
        raise Explosive("bang")

    enqueued = explosive.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, info.last_error) == ("dead", 2, "bang")


def test_a_dead_job_that_is_retried_keeps_its_old_errors_and_gets_fresh_attempts(job):
    broken = True

    @job("mended", max_attempts=3)
    def mended(run: RunningJob):
        if broken:
            raise ValueError(f"attempt {run.attempt}")
        return run.attempt

    enqueued = mended.enqueue()
    drain()
    before = get_job(enqueued.id).errors
    broken = False
    assert retry_dead(enqueued.id) == 1
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.result) == ("succeeded", 1)
    assert info.errors == before
    assert [entry["message"] for entry in before] == ["attempt 1", "attempt 2", "attempt 3"]
