"""``isolation="process"``: whatever the handler does to its process, the worker goes on with the right outcome."""

import errno
import os
import signal
import subprocess

import pytest
from django.conf import settings
from django.db import connections

from django_jobs import RunningJob, cancel, get_job
from django_jobs.clock import DatabaseClock
from django_jobs.engines.values import ClaimedJob
from django_jobs.exceptions import ConfigurationError
from django_jobs.ids import uuid7
from django_jobs.models import Job
from django_jobs.worker.handover import encode_job
from django_jobs.worker.isolated import IsolatedRuns
from django_jobs.worker.isolation import Isolation, RunProcess
from django_jobs.worker.running import Run
from tests.app.jobs import hang, hold_isolated, mark_atomic_isolated, trick, trick_delicate
from tests.app.models import Mark
from tests.processes import children_of, open_descriptors
from tests.waiting import wait_for

from .elsewhere import pointed_to
from .embedded import drain, running_worker


def run_trick(name):
    enqueued = trick.enqueue(name=name)
    drain()
    return get_job(enqueued.id)


def test_language_and_time_zone_are_the_defaults_for_every_run():
    jobs = [trick.enqueue(name="travel") for _ in range(3)]
    drain(concurrency=1)
    seen = [get_job(one.id).result for one in jobs]
    assert seen == [[settings.LANGUAGE_CODE, settings.TIME_ZONE, seen[0][2]]] * 3


def test_the_handler_runs_in_another_process_which_is_kept_for_the_next_run():
    jobs = [trick.enqueue(name="return") for _ in range(3)]
    drain(concurrency=1)
    (pid,) = {get_job(one.id).result["pid"] for one in jobs}
    assert pid != os.getpid()
    assert pid not in children_of(os.getpid())


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("raise", "tests.app.jobs.TwoArguments", "a single text"),
        ("exit", "SystemExit", "7"),
        ("GeneratorExit", "GeneratorExit", "out"),
        ("KeyboardInterrupt", "KeyboardInterrupt", "typed"),
        ("CancelledError", "asyncio.exceptions.CancelledError", "cancelled"),
        ("TimeoutError", "TimeoutError", "late"),
        ("os._exit", "django_jobs.exceptions.RunProcessDied", "exit code 3"),
        ("segfault", "django_jobs.exceptions.RunProcessDied", "SIGSEGV"),
        ("hide death", "django_jobs.exceptions.RunProcessDied", "exit code 4"),
    ],
)
def test_a_handler_that_ends_badly_fails_its_attempt_and_the_worker_goes_on(name, error, words):
    bad, good = trick.enqueue(name=name), trick.enqueue(name="return")
    drain(concurrency=1)
    info = get_job(bad.id)
    assert (info.status, info.reason, info.attempts) == ("dead", "exhausted", 1)
    assert info.errors[0]["type"] == error
    assert words in info.errors[0]["message"]
    assert get_job(good.id).status == "succeeded"


def test_the_thread_that_waits_for_the_process_holds_no_connection(job, gate):
    wrappers = []

    @job("keeps")
    def keeps():
        wrappers.append(connections["default"])
        Mark.objects.count()

    keeps.using(priority=9).enqueue()
    isolated = hold_isolated.enqueue(label="a", until=str(gate))
    with pointed_to(CONN_MAX_AGE=None), running_worker(concurrency=1):
        wait_for(Mark.objects.exists, timeout=30)
        assert wrappers[0].connection is None
        gate.touch()
        wait_for(lambda: get_job(isolated.id).status == "succeeded")


def test_an_open_transaction_left_behind_is_an_error_and_the_next_run_of_the_process_is_clean():
    left, pid, after = (trick.enqueue(name=name) for name in ("leave transaction", "return", "mark"))
    drain(concurrency=1)
    info = get_job(left.id)
    assert info.status == "dead"
    assert "returned with an atomic block" in info.last_error
    assert get_job(after.id).status == "succeeded"
    marks = Mark.objects.values_list("label", "pid")
    assert list(marks) == [("clean", get_job(pid.id).result["pid"])]


def test_the_traceback_of_the_process_is_on_record():
    assert "do_raise_two_arguments" in run_trick("raise").errors[0]["traceback"]


def test_a_result_that_is_no_json_ends_as_anywhere_else():
    assert run_trick("lambda").status == "succeeded"


def test_ten_megabytes_of_output_block_nobody():
    info = run_trick("print")
    assert (info.status, info.result) == ("succeeded", "printed")


def test_garbage_on_the_way_to_the_worker_fails_the_run_and_the_worker_goes_on():
    bad, good = trick.enqueue(name="garble"), trick.enqueue(name="return")
    drain(concurrency=1)
    assert get_job(bad.id).status == "dead"
    assert get_job(good.id).status == "succeeded"


def test_a_long_result_comes_through_whole():
    assert run_trick("long").result == "y" * 60_000


def test_a_signal_to_the_process_is_its_worker_s_to_hear():
    assert run_trick("interrupt").status == "succeeded"


def test_where_a_lost_run_is_to_be_buried_a_dead_process_buries_the_job():
    enqueued = trick_delicate.enqueue(name="os._exit")
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.reason, info.attempts) == ("dead", "worker_lost", 1)


def test_a_handler_that_never_ends_is_killed_at_its_time_out_and_leaves_no_zombie():
    with running_worker(concurrency=2) as worker:
        jobs = [hang.enqueue(label=f"{n}") for n in range(4)]
        wait_for(lambda: all(get_job(one.id).status == "dead" for one in jobs), timeout=60)
        assert {get_job(one.id).reason for one in jobs} == {"timeout"}
        assert Mark.objects.count() == 4
        wait_for(lambda: not zombies(), message="no zombie to be left")
        assert worker.alive
        assert worker.process.loop.overruns.stuck == 0


def test_fifty_processes_that_are_killed_leave_no_zombie_and_no_descriptor():
    before = open_descriptors()
    for process in [RunProcess() for _ in range(50)]:
        process.kill()
    assert not zombies()
    assert open_descriptors() == before


def test_a_process_that_cannot_be_spawned_leaves_no_descriptor(monkeypatch):
    before = open_descriptors()
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(BlockingIOError):
        RunProcess()
    assert open_descriptors() == before


def test_a_process_that_does_not_take_its_job_fails_the_run():
    """It is ready, and then stands still; the job is longer than what a socket holds."""
    with running_worker(concurrency=1):
        warm = trick.enqueue(name="return")
        wait_for(lambda: get_job(warm.id).status == "succeeded", timeout=60)
        os.kill(get_job(warm.id).result["pid"], signal.SIGSTOP)
        enqueued = trick_delicate.enqueue(name="y" * 250_000)
        (error,) = wait_for(lambda: get_job(enqueued.id).errors, timeout=30, message="the run to fail")
        assert "stood still and did not take the job" in error["message"]


def test_a_run_whose_lease_was_lost_while_its_process_started_is_not_begun():
    class Ready:
        runs, alive = 0, True

    isolation = Isolation(DatabaseClock())
    isolation._idle.append(Ready())
    run = Run(ClaimedJob(uuid7(), 1, "trick", "{}", "default", 0, "", 1, 5, 0, "{}", False), trick.job_type)
    run.lost = True
    assert isolation.run(run) is None
    assert [process.runs for process in isolation._idle] == [1]


def refuse(*_, **__):
    raise BlockingIOError(errno.EAGAIN, "no process left")


def zombies():
    """Children that ended and were not waited for."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def test_progress_numbers_once_and_the_result_come_through(gate):
    enqueued = hold_isolated.using(context={"request_id": "r-1"}).enqueue(label="a", until=str(gate))
    with running_worker():
        wait_for(lambda: get_job(enqueued.id).progress, timeout=30)
        assert get_job(enqueued.id).progress == {"fraction": 0.5, "message": "half way"}
        token = Job.objects.get().lease_token
        gate.touch()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    info = get_job(enqueued.id)
    assert info.metrics == {"rows_processed": 7}
    assert (info.result["token"], info.result["attempt"]) == (token, 1)
    assert info.result["context"]["request_id"] == "r-1"


def test_the_process_learns_of_a_cancellation(configure, gate):
    configure(LEASE=2)
    enqueued = hold_isolated.enqueue(label="a", until=str(gate))
    with running_worker():
        wait_for(Mark.objects.exists, timeout=30)
        cancel(enqueued.id)
        wait_for(lambda: Mark.objects.filter(label="a cancelled=True lost=False").exists())


def test_the_process_learns_of_a_cancellation_that_comes_before_the_run_has_begun(job):
    @job("early")
    def early(run: RunningJob):
        return run.is_cancelled()

    claimed = ClaimedJob(uuid7(), 7, "early", "{}", "default", 0, "", 1, 5, 0, "{}", False)
    runs = IsolatedRuns(None)
    runs._take({"token": 7, "cancelled": True, "lost": False})
    ended = runs._run_one({"job": encode_job(claimed), "databases": {}, "clock_ahead": 0.0})
    assert ended["result"] is True


def test_the_process_learns_that_the_lease_is_lost(configure, gate):
    configure(LEASE=2)
    hold_isolated.enqueue(label="a", until=str(gate))
    with running_worker(maintenance=False):
        wait_for(Mark.objects.exists, timeout=30)
        Job.objects.update(lease_token=None, status="scheduled")
        wait_for(lambda: Mark.objects.filter(label="a cancelled=False lost=True").exists())


def test_an_atomic_run_commits_or_rolls_back_with_its_completion():
    good, bad = (mark_atomic_isolated.using(max_attempts=1).enqueue(label=f"{n}", fail=bool(n)) for n in range(2))
    drain()
    assert [get_job(one.id).status for one in (good, bad)] == ["succeeded", "dead"]
    assert [mark.label for mark in Mark.objects.all()] == ["0"]


def test_stopping_kills_the_process_after_the_time_out_and_hands_its_job_back(gate):
    hold_isolated.enqueue(label="a", until=str(gate))
    with running_worker() as worker:
        wait_for(Mark.objects.exists, timeout=30)
        worker.stop()
        worker.stop()
        worker.join()
    row = Job.objects.get()
    assert (row.status, row.attempts, row.lease_token) == ("scheduled", 0, None)
    assert [mark.label for mark in Mark.objects.all()] == ["a started"]


def test_an_async_handler_is_refused(job):
    with pytest.raises(ConfigurationError, match=r"isolation='process' needs a plain def"):

        @job("refused", isolation="process")
        async def refused():
            pass


def test_another_kind_of_isolation_is_refused(job):
    with pytest.raises(ConfigurationError, match="isolation is None or 'process', not 'thread'"):

        @job("refused", isolation="thread")
        def refused():
            pass


@pytest.fixture
def gate(tmp_path):
    return tmp_path / "gate"
