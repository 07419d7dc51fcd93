"""A process that is killed in the middle of a bulk operation: whoever comes next goes on, and nothing is done twice."""

import signal
import subprocess
import sys

import pytest

from django_jobs import get_bulk
from django_jobs.models import BulkOperation, DeadJob, Job, JobHistory
from tests.operations.triage import carry_out, die
from tests.process.command import ROOT, environment
from tests.waiting import wait_for

DEAD = 6000


@pytest.mark.parametrize("command", ["retrydead", "discarddead"])
def test_of_a_killed_bulk_operation_every_job_is_moved_once(command, committed_data):
    jobs = [job.id for _ in range(DEAD // 1000) for job in die(1000)]
    process = subprocess.Popen(
        [sys.executable, "-m", "django", command, "--all"],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: BulkOperation.objects.filter(done__gt=0).exists(), timeout=60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    half = BulkOperation.objects.get()
    assert (half.state, half.done) == ("running", DEAD - DeadJob.objects.count())
    row = carry_out(get_bulk(half.id))
    assert (row.state, row.done, row.skipped) == ("done", DEAD, 0)
    moved = (
        Job.objects.values_list("id", flat=True)
        if command == "retrydead"
        else JobHistory.objects.values_list("job_id", flat=True)
    )
    assert sorted(moved) == sorted(jobs)
