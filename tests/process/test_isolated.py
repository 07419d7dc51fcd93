"""Processes of ``isolation="process"`` handlers, beside a worker that lives or dies."""

import signal

from django_jobs import get_job
from django_jobs.models import Job
from tests.app.jobs import hog_isolated, mark
from tests.app.models import Mark
from tests.processes import children_of, is_running
from tests.waiting import wait_for


def test_native_code_that_lets_nothing_else_run_does_not_cost_the_lease(start_worker, wait_for_marks):
    """In a thread it would keep the renewer from renewing; here the worker goes on beside it."""
    worker = start_worker("--concurrency", "2")
    hog = hog_isolated.enqueue(label="hog", seconds=5)
    wait_for_marks("hog")
    mark.enqueue(label="beside it")
    wait_for_marks("beside it", timeout=4)
    assert get_job(hog.id).status == "processing"
    wait_for(lambda: get_job(hog.id).status == "succeeded", timeout=30)
    assert (get_job(hog.id).attempts, get_job(hog.id).errors) == (1, ())
    assert "lease is lost" not in worker.output


def test_the_process_of_a_killed_worker_ends_with_it_although_native_code_runs(start_worker, wait_for_marks):
    worker = start_worker("--concurrency", "1", LEASE=60)
    hog_isolated.enqueue(label="hog", seconds=60)
    wait_for_marks("hog")
    (process,) = children_of(worker.pid)
    assert Mark.objects.get().pid == process
    worker.send(signal.SIGKILL)
    wait_for(lambda: not is_running(process), timeout=10)
    assert Job.objects.get().status == "processing", "its lease runs out"


def test_a_signal_to_the_worker_lets_its_isolated_runs_end(start_worker, wait_for_marks):
    worker = start_worker("--concurrency", "1", LEASE=60)
    hog = hog_isolated.enqueue(label="hog", seconds=2)
    wait_for_marks("hog")
    (process,) = children_of(worker.pid)
    worker.stop(signal.SIGTERM)
    assert worker.wait() == 0, worker.output
    assert get_job(hog.id).status == "succeeded"
    wait_for(lambda: not is_running(process))
