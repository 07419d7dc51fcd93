import os
import signal
import subprocess
import sys

import pytest

from tests.app.models import Mark
from tests.process.command import ROOT, WorkerCommand, environment
from tests.process.supervisors import SupervisorCommand
from tests.waiting import wait_for

QUICK = {
    "RETRY": {"base": 0.05, "cap": 0.2, "floor": 0},
    "STAGE_EVERY": 0.1,
    "RESCUE_EVERY": 0.2,
    "LEASE": 2,
}


@pytest.fixture(autouse=True)
def committed_data(transactional_db):
    """Workers have connections of their own: they see what is committed."""


@pytest.fixture
def start_worker(tmp_path, committed_data):
    workers = []

    def start_worker(*arguments, wrapper=(), wait=True, **jobs_settings):
        worker = WorkerCommand(tmp_path, *arguments, wrapper=wrapper, settings=QUICK | jobs_settings)
        workers.append(worker)
        return worker.wait_until_ready() if wait else worker

    yield start_worker
    for worker in workers:
        worker.end()


@pytest.fixture
def start_supervisor(tmp_path, committed_data):
    """``start_supervisor(2, …)``: with so many processes, all of them taking jobs."""
    supervisors = []

    def start_supervisor(processes, *arguments, wrapper=(), wait=True, **jobs_settings):
        arguments = ("--processes", str(processes), *arguments)
        supervisor = SupervisorCommand(tmp_path, *arguments, wrapper=wrapper, settings=QUICK | jobs_settings)
        supervisors.append(supervisor)
        if wait:
            supervisor.wait_for_workers(processes)
        return supervisor

    yield start_supervisor
    for supervisor in supervisors:
        supervisor.end()


@pytest.fixture
def start_scheduler(tmp_path, committed_data):
    schedulers = []

    def start_scheduler(*arguments, wait=True, module="django", **jobs_settings):
        scheduler = WorkerCommand(
            tmp_path, *arguments, command="runjobscheduler", module=module, settings=jobs_settings
        )
        schedulers.append(scheduler)
        return scheduler.wait_until_ready() if wait else scheduler

    yield start_scheduler
    for scheduler in schedulers:
        scheduler.end()


@pytest.fixture
def fleet(start_worker, tmp_path):
    """``fleet(4, *arguments)``: so many workers, each replaced when it dies, and one more that does the maintenance."""
    started = []

    def fleet(count, *arguments, **jobs_settings):
        start_worker("--queues", "bulk", **jobs_settings)
        command = [sys.executable, "-m", "tests.process.fleet", str(count), *arguments]
        with (tmp_path / "fleet.log").open("wb") as log:
            started.append(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env=environment(**QUICK | jobs_settings),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    yield fleet
    for popen in started:
        os.killpg(popen.pid, signal.SIGKILL)
        popen.wait()


@pytest.fixture
def gate(tmp_path):
    """A file that ``hold`` jobs wait for; ``gate.touch()`` lets them go."""
    return tmp_path / "gate"


@pytest.fixture
def wait_for_marks():
    """Wait until these labels are among the marks; returns all, in order."""

    def wait_for_marks(*labels, timeout=20):
        def marks():
            found = list(Mark.objects.order_by("pk").values_list("label", flat=True))
            return found if set(labels) <= set(found) else None

        return wait_for(marks, timeout, f"the marks {labels}")

    return wait_for_marks
