"""Cancelling a job that runs, or is about to, or has just ended."""

import threading
from datetime import timedelta

import pytest

from django_jobs import Bury, Cancel, Retry, Snooze, cancel, get_job
from django_jobs.models import Job
from tests.waiting import wait_for
from tests.worker.embedded import running_worker


@pytest.mark.parametrize("how", ["return", "raise", "retry", "snooze", "cancel", "bury", "timeout"])
def test_cancel_while_running_meets_every_ending(job, how):
    started, release = threading.Event(), threading.Event()
    endings = {
        "raise": ValueError("x"),
        "retry": Retry(after=timedelta(0)),
        "snooze": Snooze(for_=timedelta(0)),
        "cancel": Cancel("x"),
        "bury": Bury("x"),
    }

    @job("ends", timeout=1 if how == "timeout" else None)
    def ends():
        started.set()
        assert release.wait(30)
        if how in endings:
            raise endings[how]
        return "done"

    enqueued = ends.enqueue()
    with running_worker() as worker:
        assert started.wait(10)
        assert cancel(enqueued.id) == "requested"
        assert cancel(enqueued.id) == "requested"
        if how != "timeout":
            release.set()
        wait_for(lambda: get_job(enqueued.id).finished_at)
        assert worker.alive
        release.set()
    expected = "succeeded" if how == "return" else "cancelled"
    assert get_job(enqueued.id).status == expected
    assert cancel(enqueued.id) == ("too_late" if how == "return" else "cancelled")
    assert not Job.objects.exists()


def test_cancelling_around_the_moment_of_the_return_ends_in_a_documented_state(job):
    @job("noop")
    def noop():
        pass

    ids = []
    with running_worker():
        for _ in range(200):
            ids.append(noop.enqueue().id)
            cancel(ids[-1])
        wait_for(lambda: not Job.objects.exists())
    assert {get_job(job_id).status for job_id in ids} <= {"succeeded", "cancelled"}
