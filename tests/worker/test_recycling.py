"""A process that has done enough ends when its running jobs have, and loses none."""

import logging
from uuid import uuid4

import pytest

from django_jobs import get_job
from django_jobs.engines.values import ClaimedJob, Tick
from django_jobs.maintenance.counts import Counts
from django_jobs.models import Job
from django_jobs.worker import recycling
from django_jobs.worker.books import Books
from django_jobs.worker.endings import handed_back
from django_jobs.worker.held import Held
from django_jobs.worker.recycling import FEWEST_RUNS, Recycling, resident_megabytes
from django_jobs.worker.running import Run
from django_jobs.worker.slots import Slots
from tests.waiting import wait_for

from .embedded import running_worker


@pytest.fixture
def memory(monkeypatch):
    """``memory(300)``: from now on the process holds so many MB; every look counts."""

    def memory(megabytes):
        monkeypatch.setattr(recycling, "resident_megabytes", lambda: megabytes)

    monkeypatch.setattr(recycling, "LOOK_SECONDS", 0)
    return memory


def test_nothing_is_due_without_limits(memory):
    memory(10**6)
    assert Recycling().reason(10**9) == ""


def test_so_many_jobs_are_enough():
    limits = Recycling(max_jobs=10)
    assert limits.reason(9) == ""
    assert "10 jobs have run here (--max-jobs 10)" in limits.reason(10)


def test_jobs_that_only_waited_in_the_process_do_not_count():
    held, slots = Held(), Slots(("default",), 1)
    books = Books(held, Counts(), lambda seconds: None)
    started, waited = (
        Run(ClaimedJob(uuid4(), n, "noop", "{}", "default", 0, "", 1, 5, 0, "{}", False), None) for n in (1, 2)
    )
    started.start()
    held.add(slots, [started, waited])
    outcomes = [handed_back(run.job) for run in (started, waited)]
    books.close(outcomes, Tick(written={outcome.job_id: None for outcome in outcomes}))
    assert (books.ended, len(held)) == (1, 0)


def test_memory_above_the_limit_is_enough(memory):
    limits = Recycling(max_memory=200)
    memory(200)
    assert limits.reason(FEWEST_RUNS) == ""
    memory(201)
    assert "it uses 201 MB (--max-memory 200)" in limits.reason(FEWEST_RUNS + 1)


def test_a_limit_below_what_the_first_jobs_need_is_said_once_and_raised(memory, caplog):
    limits = Recycling(max_memory=200)
    memory(250)
    with caplog.at_level(logging.WARNING, "django_jobs.worker"):
        assert [limits.reason(ended) for ended in (0, FEWEST_RUNS, 1000)] == ["", "", ""]
        memory(300)
        assert limits.reason(2000) == "", "it grew a little"
    (record,) = [record for record in caplog.records if "--max-memory" in record.message]
    assert "--max-memory 200 is less than the 250 MB" in record.message
    memory(320)
    assert "it uses 320 MB (--max-memory 313)" in limits.reason(3000), "what leaks is replaced all the same"


def test_what_a_process_needs_is_seen_right_after_its_first_jobs(memory, monkeypatch, caplog):
    """Not a second later: what has leaked by then must not pass for it."""
    monkeypatch.setattr(recycling, "LOOK_SECONDS", 600)
    limits = Recycling(max_memory=200)
    memory(250)
    for ended in range(FEWEST_RUNS):
        assert limits.reason(ended) == ""
        assert "--max-memory" not in caplog.text
    limits.reason(FEWEST_RUNS)
    assert "--max-memory" in caplog.text


def test_resident_memory_is_that_of_this_process():
    before = resident_megabytes()
    ballast = bytearray(b"x" * 64 * 1024 * 1024)
    assert before + 48 < resident_megabytes() < before + 96
    del ballast


def test_a_process_that_is_to_be_replaced_ends_with_0_and_its_running_jobs_end_first(job, tmp_path):
    gate = tmp_path / "gate"

    @job("held")
    def held():
        wait_for(gate.exists)

    @job("quick")
    def quick():
        pass

    long = held.enqueue()
    for _ in range(8):
        quick.enqueue()
    with running_worker(concurrency=2, max_jobs=3, shutdown_timeout=None) as worker:
        wait_for(lambda: worker.process.loop.retiring)
        left = Job.objects.exclude(pk=long.id).filter(status="processing")
        wait_for(lambda: not left.exists())
        assert worker.alive, "its running job has not ended"
        gate.touch()
        assert worker.join() == 0
    assert get_job(long.id).status == "succeeded"
    assert set(Job.objects.values_list("attempts", "lease_token")) <= {(0, None)}
