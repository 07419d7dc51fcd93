"""No run sees anything of another one: context variables, language, time zone, request context."""

import asyncio
import random
import threading
from contextvars import ContextVar

import pytest
from asgiref.local import Local
from asgiref.sync import sync_to_async
from django.utils import timezone, translation

from django_jobs import enqueue, get_job, job_context
from django_jobs.context import current_context
from django_jobs.models import DeadJob, JobHistory
from django_jobs.worker.tasks import Tasks
from tests.worker.embedded import drain

REQUEST_ID = ContextVar("request_id", default="none")
LOCAL = Local()


def results():
    return [row.result for row in JobHistory.objects.order_by("job_id")]


def test_context_variables_of_one_thread_run_are_not_seen_by_the_next(job):
    @job("leaves_traces")
    def leaves_traces(n: int):
        seen = [REQUEST_ID.get(), getattr(LOCAL, "tenant", "none"), threading.current_thread().name]
        REQUEST_ID.set(str(n))
        LOCAL.tenant = n
        return seen

    leaves_traces.enqueue_many({"n": n} for n in range(20))
    drain(concurrency=1)
    assert {tuple(result) for result in results()} == {("none", "none", "django_jobs run 1")}


def test_a_run_does_not_see_the_context_of_whoever_started_the_worker(job):
    @job("looks")
    async def looks():
        return [REQUEST_ID.get(), await sync_to_async(REQUEST_ID.get)()]

    looks.enqueue()
    REQUEST_ID.set("of the test")
    drain()
    assert results() == [["none", "none"]]


def test_a_thousand_interleaved_tasks_keep_their_own_values(job, configure):
    @job("interleaved")
    async def interleaved(n: int):
        assert REQUEST_ID.get() == "none"
        REQUEST_ID.set(str(n))
        LOCAL.tenant = n
        for _ in range(3):
            await asyncio.sleep(random.random() / 100)  # so that the tasks interleave in any order
            assert REQUEST_ID.get() == str(n)
            assert n == LOCAL.tenant
        return n

    interleaved.enqueue_many({"n": n} for n in range(1000))
    drain(concurrency=100)
    assert sorted(results()) == list(range(1000))


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_language_and_time_zone_are_the_defaults_for_every_run(job, kind, settings):
    settings.LANGUAGE_CODE = "de"
    settings.TIME_ZONE = "Asia/Kolkata"

    def travel(n):
        seen = [translation.get_language(), timezone.get_current_timezone_name()]
        translation.activate("es")
        timezone.activate("Asia/Tokyo")
        if n % 2:
            raise ValueError(seen)
        return seen

    @job("travels", max_attempts=1)
    def travels(n: int):
        return travel(n)

    @job("travels_async", max_attempts=1)
    async def travels_async(n: int):
        await asyncio.sleep(0)  # another task may have its turn
        return travel(n)

    (travels if kind == "thread" else travels_async).enqueue_many({"n": n} for n in range(10))
    drain(concurrency=1)
    assert results() == [["de", "Asia/Kolkata"]] * 5
    assert set(DeadJob.objects.values_list("last_error", flat=True)) == {"['de', 'Asia/Kolkata']"}


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_the_enqueuers_context_travels_along_and_further_with_jobs_enqueued_by_the_handler(job, kind):
    @job("second")
    def second():
        return current_context()

    @job("first")
    def first():
        enqueue("second")
        return current_context()

    @job("first_async")
    async def first_async():
        await sync_to_async(enqueue)("second")
        return current_context()

    with job_context(request_id="r-1"):
        (first if kind == "thread" else first_async).enqueue()
    second.enqueue()
    drain(concurrency=1)
    assert sorted(map(str, results())) == ["{'request_id': 'r-1'}", "{'request_id': 'r-1'}", "{}"]


def test_a_handler_that_changes_its_arguments_changes_nothing_else(job):
    @job("mutates", max_attempts=3)
    def mutates(order: dict[str, object]):
        seen = dict(order)
        order.pop("id", None)
        order["x"] = object()
        if len(seen) != 2:
            raise AssertionError("saw the change of an earlier attempt")
        raise ValueError("again")

    enqueued = mutates.enqueue(order={"id": 1, "lines": [1, 2]})
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.payload) == ("dead", {"order": {"id": 1, "lines": [1, 2]}})
    assert {entry["message"] for entry in info.errors} == {"again"}


def test_async_runs_do_not_queue_behind_each_others_database_calls(job):
    both = threading.Barrier(2)

    @job("blocks_in_thread")
    async def blocks_in_thread():
        await sync_to_async(both.wait)(20)

    blocks_in_thread.enqueue()
    last = blocks_in_thread.enqueue()
    drain(concurrency=2)
    assert get_job(last.id).status == "succeeded"


def test_there_is_one_event_loop_however_many_threads_ask_for_it_at_once():
    tasks, together = Tasks(None, None), threading.Barrier(16)
    loops = []

    def ask():
        together.wait(20)
        loops.append(tasks._running_loop())

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tasks.close()
    assert len(set(map(id, loops))) == 1


def test_runs_in_threads_and_tasks_may_follow_each_other_in_any_order(job):
    @job("in_thread")
    def in_thread():
        pass

    @job("in_task")
    async def in_task():
        await asyncio.sleep(0)  # another task may have its turn

    for _ in range(100):
        in_thread.enqueue()
        in_task.enqueue()
    drain(concurrency=10)
    assert JobHistory.objects.filter(status="succeeded").count() == 200
