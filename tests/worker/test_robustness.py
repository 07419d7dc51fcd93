"""Whatever breaks between the claim and the handler ends one job at most, and never the worker."""

import logging
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_jobs import RunningJob, get_job
from django_jobs.models import Job, JobHistory
from django_jobs.registry import registry
from django_jobs.worker import endings, executor
from tests.factories import JobFactory, JobHistoryFactory
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


def ago(**duration):
    return timezone.now() - timedelta(**duration)


class BrokenFilter(logging.Filter):
    def filter(self, record):
        raise RuntimeError("the filter is broken")


@pytest.mark.parametrize("name", ["django_jobs.runs", "django_jobs.worker", "django_jobs.maintenance"])
def test_a_log_filter_that_raises_costs_its_lines_only(job, noop, name, configure):
    configure(LEASE=1)

    @job("fails", max_attempts=2)
    def fails():
        raise ValueError("x")

    logger = logging.getLogger(name)
    broken = BrokenFilter()
    logger.addFilter(broken)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        failing = fails.enqueue()
        JobFactory(lapsed=True, type="noop")
        with running_worker() as worker:
            wait_for(lambda: get_job(failing.id).status == "dead")
            enqueued = noop.enqueue()
            wait_for(lambda: get_job(enqueued.id).status == "succeeded")
            wait_for(lambda: not Job.objects.exists())
            assert worker.alive
        assert worker.code == 0
    finally:
        logger.removeFilter(broken)
        logger.setLevel(level)


def test_a_log_handler_that_raises_does_not_end_the_worker(job, noop):
    class BrokenHandler(logging.Handler):
        def handle(self, record):
            raise RuntimeError("the handler is broken")

    handler = BrokenHandler()
    root = logging.getLogger("django_jobs")
    root.addHandler(handler)
    try:
        enqueued = [noop.enqueue() for _ in range(5)]
        assert drain() == 0
        assert {get_job(one.id).status for one in enqueued} == {"succeeded"}
    finally:
        root.removeHandler(handler)


@pytest.fixture
def refused_threads(monkeypatch):
    """Names of threads that the system does not start, as at the limit of a container."""
    real, refused = threading.Thread.start, {}

    def start(self):
        if refused.get(self.name, 0):
            refused[self.name] -= 1
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    return refused


def test_a_worker_that_gets_no_more_threads_goes_on_with_those_it_has(job, noop, refused_threads):
    refused_threads["django_jobs run 2"] = 1000
    enqueued = [noop.enqueue() for _ in range(5)]
    assert drain(concurrency=3) == 0
    assert {(get_job(one.id).status, get_job(one.id).attempts) for one in enqueued} == {("succeeded", 1)}


def test_an_event_loop_that_gets_no_thread_is_started_another_time(job, refused_threads):
    @job("asynchronous")
    async def asynchronous():
        pass

    refused_threads["django_jobs event loop"] = 1
    enqueued = asynchronous.enqueue()
    assert drain() == 0
    assert (get_job(enqueued.id).status, get_job(enqueued.id).attempts) == ("succeeded", 1)
    assert refused_threads == {"django_jobs event loop": 0}


def test_rows_in_a_state_of_a_later_release_are_left_alone_and_hold_nobody_up(noop):
    strange = JobFactory(status="zzz", run_at=ago(days=1), lease_token=7, locked_by="w", locked_until=ago(days=1))
    JobHistoryFactory(status="zzz", job_id=strange.id)
    before = Job.objects.filter(pk=strange.id).values().get()
    with running_worker() as worker:
        for _ in range(2):
            enqueued = noop.enqueue()
            wait_for(lambda job_id=enqueued.id: get_job(job_id).status == "succeeded")
            wait_for(lambda: worker.posture == "asleep" or connection.vendor == "sqlite")
    assert Job.objects.filter(pk=strange.id).values().get() == before
    assert JobHistory.objects.get(job_id=strange.id).status == "zzz"


@pytest.mark.parametrize("error", [RuntimeError("broken"), SystemExit(1), RecursionError()], ids=repr)
def test_an_error_while_decoding_ends_that_job_only(job, noop, error, monkeypatch):
    @job("undecodable", max_attempts=2)
    def undecodable(n: int):
        pass

    real = type(undecodable.job_type.signature).decode

    def decode(self, payload):
        if self is undecodable.job_type.signature:
            raise error
        return real(self, payload)

    monkeypatch.setattr(type(undecodable.job_type.signature), "decode", decode)
    broken, fine = undecodable.enqueue(n=1), noop.enqueue()
    drain(concurrency=1)
    info = get_job(broken.id)
    assert (info.status, info.attempts) == ("dead", 2)
    assert get_job(fine.id).status == "succeeded"


def test_an_error_while_the_context_is_adopted_ends_that_job_only(job, noop, monkeypatch):
    def refuse(values):
        raise RuntimeError("no context today")

    monkeypatch.setattr(executor, "adopt_context", refuse)
    broken = noop.using(max_attempts=1, context={"request_id": "r"}).enqueue()
    fine = noop.enqueue()
    drain()
    assert (get_job(broken.id).status, get_job(fine.id).status) == ("dead", "succeeded")


def test_a_stored_payload_that_is_no_object_ends_its_job_only(job, noop):
    for payload in ([], "text", 5, {"unknown": 1}):
        JobFactory(type="noop", payload=payload)
    fine = noop.enqueue()
    drain(horizon=0)
    assert get_job(fine.id).status == "succeeded"
    assert not Job.objects.filter(status="processing").exists()


def test_an_error_while_the_result_is_prepared_ends_that_attempt_only(job, noop, monkeypatch):
    real, calls = endings.clean_json, []

    def sometimes(*args):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a bug of ours")
        return real(*args)

    @job("returns")
    def returns():
        return {"some": "result"}

    monkeypatch.setattr(endings, "clean_json", sometimes)
    enqueued = returns.enqueue()
    with running_worker() as worker:
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        after = noop.enqueue()
        wait_for(lambda: get_job(after.id).status == "succeeded")
        assert worker.alive


def test_a_handler_that_vanishes_from_the_register_in_mid_run_still_ends(job):
    @job("vanishing", max_attempts=2)
    def vanishing(run: RunningJob):
        registry._by_name.pop("vanishing", None)
        raise ValueError("gone")

    enqueued = vanishing.enqueue()
    drain(horizon=0)
    assert Job.objects.get(pk=enqueued.id).last_error == "gone"


def test_a_worker_runs_in_a_thread_and_a_second_one_after_it(noop):
    for _ in range(2):
        enqueued = noop.enqueue()
        with running_worker() as worker:
            wait_for(lambda enqueued=enqueued: get_job(enqueued.id).status == "succeeded")
        assert worker.code == 0
