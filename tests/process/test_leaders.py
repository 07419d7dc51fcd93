"""The process that looks for all of them is killed: another one does."""

import signal
from datetime import timedelta

from django_jobs import get_job
from django_jobs.models import Leadership, Worker
from tests.app.jobs import mark
from tests.waiting import wait_for


def leader(workers):
    """The worker that leads by now, of these."""
    holders = list(Leadership.objects.values_list("holder", flat=True))
    pids = set(Worker.objects.filter(pk__in=holders).values_list("pid", flat=True))
    return next((worker for worker in workers if worker.pid in pids), None)


def test_a_leader_that_is_killed_is_followed_and_delayed_jobs_run(start_worker):
    workers = [start_worker() for _ in range(3)]
    killed = wait_for(lambda: leader(workers))
    killed.send(signal.SIGKILL)
    killed.end()
    jobs = [mark.using(delay=timedelta(milliseconds=200)).enqueue(label=f"{n}") for n in range(3)]
    others = [worker for worker in workers if worker is not killed]
    wait_for(lambda: leader(others), timeout=20, message="another worker to lead")
    wait_for(lambda: all(get_job(job.id).status == "succeeded" for job in jobs), timeout=20)


def test_a_leader_that_stops_is_followed(start_worker):
    workers = [start_worker() for _ in range(2)]
    stopped = wait_for(lambda: leader(workers))
    stopped.stop()
    assert stopped.wait() == 0
    job = mark.using(delay=timedelta(milliseconds=200)).enqueue(label="later")
    wait_for(lambda: get_job(job.id).status == "succeeded", timeout=20)
