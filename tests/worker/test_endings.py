"""What becomes of a run, by how its handler ends."""

from datetime import timedelta

import pytest

from django_jobs import Bury, Cancel, Retry, RunningJob, Snooze, get_job
from django_jobs.models import DeadJob, Job
from tests.worker.embedded import drain


def test_a_returned_value_is_kept_as_the_result(job):
    @job("answers")
    def answers():
        return {"answer": 42}

    enqueued = answers.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.result, info.attempts, info.errors) == ("succeeded", {"answer": 42}, 1, ())
    assert info.duration_ms is not None
    assert info.enqueued_at <= info.finished_at


def test_an_async_handler_returns_a_result_too(job):
    @job("answers_async")
    async def answers_async():
        return [1, 2]

    enqueued = answers_async.enqueue()
    drain()
    assert get_job(enqueued.id).result == [1, 2]


@pytest.mark.parametrize(
    "result",
    [object(), float("nan"), "a\x00b", "\ud800", {"deep": {1, 2}}, {object(): 1}, "x" * 1_000_000, lambda: 1, 10**400],
    ids=["object", "nan", "nul", "surrogate", "set", "key", "megabyte", "lambda", "huge-int"],
)
@pytest.mark.parametrize("atomic", [False, True])
def test_a_result_that_cannot_be_stored_does_not_fail_the_job(job, result, atomic):
    @job("returns_oddity", atomic=atomic)
    def returns_oddity():
        return result

    enqueued = returns_oddity.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts) == ("succeeded", 1)


def test_an_error_is_retried_and_every_attempt_is_kept(job):
    @job("fails_twice")
    def fails_twice(run: RunningJob):
        if run.attempt < 3:
            raise ValueError(f"attempt {run.attempt} went wrong")

    enqueued = fails_twice.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts) == ("succeeded", 3)
    assert [entry["message"] for entry in info.errors] == ["attempt 1 went wrong", "attempt 2 went wrong"]
    assert [entry["attempt"] for entry in info.errors] == [1, 2]


def test_a_retry_waits_for_its_delay_by_the_databases_clock(job):
    @job("fails_slowly", retry=lambda attempt, error: timedelta(hours=1))
    def fails_slowly():
        raise ValueError("later")

    enqueued = fails_slowly.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, info.last_error) == ("failed_retrying", 1, "later")
    waits = info.next_attempt_at - info.enqueued_at
    assert timedelta(hours=1) <= waits < timedelta(hours=1, minutes=5)


@pytest.mark.parametrize("after", [timedelta(minutes=7), 420, 420.0])
def test_retry_with_a_delay_overrides_the_policy_and_counts_the_attempt(job, after):
    @job("retries")
    def retries():
        raise Retry("not yet", after=after)

    enqueued = retries.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts) == ("failed_retrying", 1)
    assert timedelta(minutes=6) < info.next_attempt_at - info.enqueued_at < timedelta(minutes=8)


def test_retry_ends_with_the_last_attempt(job):
    @job("always_retries", max_attempts=3)
    def always_retries():
        raise Retry("again", after=timedelta(0))

    enqueued = always_retries.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.reason, info.attempts) == ("dead", "exhausted", 3)


def test_a_snooze_refunds_the_attempt(job):
    snoozes = []

    @job("snoozes", max_attempts=1)
    def snoozes_three_times(run: RunningJob):
        snoozes.append(run.attempt)
        if len(snoozes) < 4:
            raise Snooze(for_=timedelta(milliseconds=1))

    enqueued = snoozes_three_times.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert snoozes == [1, 1, 1, 1]
    assert (info.status, info.attempts, info.errors) == ("succeeded", 1, ())


@pytest.mark.parametrize("pause", [timedelta(days=10_000), timedelta(days=-1), "soon", None, float("nan"), 1e300])
def test_a_snooze_of_nonsense_is_bounded_and_ends_nothing(job, pause):
    seen = []

    @job("snoozes_oddly")
    def snoozes_oddly():
        seen.append(1)
        if len(seen) == 1:
            raise Snooze(for_=pause)

    enqueued = snoozes_oddly.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert info.status == "succeeded" or info.next_attempt_at - info.enqueued_at < timedelta(days=367)


def test_cancel_finishes_without_success(job):
    @job("cancels")
    def cancels():
        raise Cancel("the customer left")

    enqueued = cancels.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.last_error) == ("cancelled", "the customer left")


def test_bury_moves_to_the_dead_letters_at_once(job):
    @job("buries")
    def buries():
        raise Bury("no such invoice")

    enqueued = buries.enqueue()
    drain()
    dead = DeadJob.objects.get(pk=enqueued.id)
    assert (dead.reason, dead.attempts, dead.error_summary) == ("buried_by_handler", 1, "no such invoice")
    assert dead.error_type == "django_jobs.exceptions.Bury"


def test_the_last_failure_buries_with_everything_an_operator_needs(job):
    @job("fails", max_attempts=3)
    def fails(n: int):
        raise ZeroDivisionError(f"invoice {n} is empty\nsecond line")

    first, second = fails.enqueue(n=1234), fails.enqueue(n=5678)
    drain()
    dead = DeadJob.objects.get(pk=first.id)
    assert (dead.reason, dead.attempts, dead.max_attempts) == ("exhausted", 3, 3)
    assert (dead.error_type, dead.error_summary) == ("ZeroDivisionError", "invoice 1234 is empty")
    assert dead.last_error == "invoice 1234 is empty\nsecond line"
    assert "in fails" in dead.errors[-1]["traceback"]
    assert len(dead.errors) == 3
    assert dead.payload == {"n": 1234}
    assert dead.fingerprint
    assert dead.fingerprint == DeadJob.objects.get(pk=second.id).fingerprint
    assert not Job.objects.exists()


def test_only_the_first_two_and_last_eight_errors_are_kept(job):
    @job("fails_often", max_attempts=14)
    def fails_often(run: RunningJob):
        raise ValueError(f"number {run.attempt}")

    enqueued = fails_often.enqueue()
    drain()
    errors = get_job(enqueued.id).errors
    assert [entry["attempt"] for entry in errors] == [1, 2, 7, 8, 9, 10, 11, 12, 13, 14]


def test_an_ending_without_its_attributes_still_ends_the_run(job):
    class OddSnooze(Snooze):
        def __init__(self):
            pass

    class OddRetry(Retry):
        def __init__(self):
            pass

    @job("ends_oddly", max_attempts=2)
    def ends_oddly(n: int):
        raise (OddSnooze, OddRetry)[n]

    enqueued = [ends_oddly.enqueue(n=0), ends_oddly.enqueue(n=1)]
    drain(horizon=0)
    for one in enqueued:
        assert get_job(one.id).status != "processing"


def test_an_ending_works_in_an_async_handler(job):
    @job("ends_async", max_attempts=1)
    async def ends_async(how: str):
        raise {"cancel": Cancel("x"), "bury": Bury("x"), "raise": ValueError("x")}[how]

    enqueued = {how: ends_async.enqueue(how=how).id for how in ("cancel", "bury", "raise")}
    drain()
    assert {how: get_job(job_id).status for how, job_id in enqueued.items()} == {
        "cancel": "cancelled",
        "bury": "dead",
        "raise": "dead",
    }
