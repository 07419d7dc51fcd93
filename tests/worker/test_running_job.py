"""What a handler can ask of its run."""

import asyncio
import threading

import pytest
from django.db import connection, transaction

from django_jobs import RunningJob, cancel, get_job
from django_jobs.exceptions import LeaseLost
from django_jobs.models import Effect, Job
from tests.app.models import Mark
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


def marks():
    return list(Mark.objects.order_by("pk").values_list("label", flat=True))


def test_a_run_knows_its_job(job):
    @job("curious", max_attempts=4)
    def curious(run: RunningJob, n: int):
        return [str(run.id), run.type, run.queue, run.tenant, run.attempt, run.max_attempts, run.context, n]

    enqueued = curious.using(queue="bulk", tenant="acme", context={"request_id": "r1"}).enqueue(n=5)
    drain()
    expected = [str(enqueued.id), "curious", "bulk", "acme", 1, 4, {"request_id": "r1"}, 5]
    assert get_job(enqueued.id).result == expected


def test_the_idempotency_key_is_stable_across_attempts_and_the_fencing_token_grows(job):
    seen = []

    @job("remote")
    def remote(run: RunningJob):
        seen.append((run.idempotency_key_for("stripe"), run.idempotency_key_for("mail"), run.fencing_token))
        if run.attempt < 3:
            raise ValueError("again")

    remote.enqueue()
    other = remote.enqueue()
    drain(concurrency=1)
    assert get_job(other.id).status == "succeeded"
    keys = {stripe for stripe, _, _ in seen}
    assert len(keys) == 2
    assert keys.isdisjoint(mail for _, mail, _ in seen)
    tokens = [token for _, _, token in seen]
    assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("atomic", [True, False])
def test_once_in_a_transaction_is_done_exactly_once_over_all_attempts(job, atomic):
    @job("charges", atomic=atomic)
    def charges(run: RunningJob):
        with transaction.atomic(), run.once("receipt") as first:
            if first:
                Mark.objects.create(label="receipt")
        if run.attempt < 3:
            raise ValueError("later")

    charges.enqueue()
    drain()
    assert marks() == ["receipt"]


def test_once_of_two_concurrent_runs_lets_one_through(job):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite: two write transactions cannot be open at once")
    both_in = threading.Barrier(2)
    answers = []

    @job("twins", atomic=False)
    def twins(run: RunningJob):
        both_in.wait(20)
        with transaction.atomic(), run.once("effect") as first:
            answers.append(first)
            if first:
                Mark.objects.create(label="effect")

    enqueued = twins.enqueue()
    with running_worker(queues="default:2"):
        wait_for(lambda: both_in.n_waiting == 1)
        Job.objects.filter(pk=enqueued.id).update(status="pending", lease_token=None, locked_until=None, locked_by="")
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        wait_for(lambda: len(answers) == 2)
    assert sorted(answers) == [False, True]
    assert marks() == ["effect"]


def test_once_outside_a_transaction_is_at_least_once_and_marked_after_the_block(job):
    @job("mails")
    def mails(run: RunningJob):
        with run.once("mail") as first:
            if first:
                Mark.objects.create(label=f"mail {run.attempt}")
                if run.attempt == 1:
                    raise ValueError("sent, but it looked like a failure")
        if run.attempt == 2:
            raise ValueError("later")

    mails.enqueue()
    drain()
    assert marks() == ["mail 1", "mail 2"]
    assert Effect.objects.count() == 1


def test_once_in_an_async_handler(job):
    @job("mails_async")
    async def mails_async(run: RunningJob):
        async with run.once("mail") as first:
            if first:
                await Mark.objects.acreate(label="mail")
        if run.attempt < 3:
            raise ValueError("later")

    enqueued = mails_async.enqueue()
    drain()
    assert (marks(), get_job(enqueued.id).attempts) == (["mail"], 3)


def test_once_takes_a_name_and_each_name_is_its_own_effect(job):
    @job("named")
    def named(run: RunningJob):
        for name in ("a", "b", "a"):
            with run.once(name) as first:
                if first:
                    Mark.objects.create(label=name)
        for wrong in ("", "x" * 201):
            with pytest.raises(ValueError, match="1 to 200"):
                run.once(wrong)

    enqueued = named.enqueue()
    drain()
    assert (get_job(enqueued.id).status, marks()) == ("succeeded", ["a", "b"])


def test_progress_is_seen_while_the_job_runs(job):
    release = threading.Event()

    @job("progresses")
    def progresses(run: RunningJob):
        run.progress(0.25, "a quarter\x00")
        assert release.wait(30)
        run.progress(5, "beyond")

    enqueued = progresses.enqueue()
    with running_worker():
        progress = wait_for(lambda: get_job(enqueued.id).progress)
        assert progress["fraction"] == 0.25
        assert progress["message"].startswith("a quarter")
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")


@pytest.mark.parametrize("nonsense", ["half", None, float("nan"), float("inf")], ids=repr)
def test_progress_of_nonsense_is_an_error_of_the_handler(job, nonsense):
    @job("nonsense", max_attempts=1)
    def report_nonsense(run: RunningJob):
        run.progress(nonsense)

    enqueued = report_nonsense.enqueue()
    drain()
    assert "0 to 1" in get_job(enqueued.id).last_error


def test_metrics_of_a_failed_run_do_not_stop_it_and_those_of_the_last_run_are_kept(job):
    @job("measures")
    def measures(run: RunningJob):
        run.report(rows_processed=run.attempt, odd="\x00", strange=object(), nan=float("nan"))
        if run.attempt == 1:
            raise ValueError("first")

    enqueued = measures.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.metrics["rows_processed"]) == ("succeeded", 2)


def test_a_running_job_learns_of_its_cancellation_within_a_renewal(job, configure):
    configure(LEASE=1, LISTEN=False)
    started = threading.Event()

    @job("cancellable")
    def cancellable(run: RunningJob):
        started.set()
        wait_for(run.is_cancelled, timeout=20)
        return "stopped early"

    enqueued = cancellable.enqueue()
    with running_worker():
        assert started.wait(10)
        assert cancel(enqueued.id) == "requested"
        wait_for(lambda: get_job(enqueued.id).finished_at)
    assert get_job(enqueued.id).status == "succeeded"


def test_a_run_whose_lease_is_lost_is_told(job, configure):
    configure(LEASE=1)
    started, told = threading.Event(), threading.Event()

    @job("robbed")
    def robbed(run: RunningJob):
        if run.attempt > 1:
            return
        started.set()
        wait_for(run.lease_lost, timeout=20)
        with pytest.raises(LeaseLost):
            run.check()
        told.set()

    @job("robbed_async")
    async def robbed_async(run: RunningJob):
        if run.attempt > 1:
            return
        started.set()
        try:
            await asyncio.sleep(60)  # until it is cancelled
        except asyncio.CancelledError:
            told.set()
            raise

    for handle in (robbed, robbed_async):
        started.clear()
        told.clear()
        enqueued = handle.enqueue()
        with running_worker():
            assert started.wait(10)
            Job.objects.filter(pk=enqueued.id).update(
                status="pending", lease_token=None, locked_until=None, locked_by=""
            )
            wait_for(lambda enqueued=enqueued: get_job(enqueued.id).status == "succeeded")
            assert told.wait(10)
        assert get_job(enqueued.id).attempts == 2
