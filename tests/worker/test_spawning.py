"""A supervisor that cannot start a process goes on, tries again, and loses nothing on the way."""

import errno
import os
import subprocess
import sys
from datetime import timedelta

import pytest

from django_jobs.worker.child import Child
from django_jobs.worker.supervisor import Supervisor, SupervisorOptions
from tests.processes import open_descriptors

TROUBLE = [errno.EAGAIN, errno.ENOMEM]


@pytest.fixture(autouse=True)
def harmless_children(monkeypatch):
    """They end at once, as after a drain."""
    monkeypatch.setattr("django_jobs.worker.child.command_line", lambda *options: [sys.executable, "-c", "pass"])


@pytest.fixture
def trouble(monkeypatch):
    """So many attempts are refused by the system."""
    left, spawn = list(TROUBLE), subprocess.Popen

    def popen(*arguments, **options):
        if left:
            number = left.pop(0)
            raise OSError(number, os.strerror(number))
        return spawn(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    return left


def test_a_process_that_cannot_be_started_is_tried_again_after_growing_pauses(trouble, caplog):
    options = SupervisorOptions(processes=1, child_options=[], shutdown_timeout=timedelta(seconds=5), drain=True)
    before = open_descriptors()
    assert Supervisor(options).run() == 0
    assert not trouble
    assert open_descriptors() == before
    pauses = [record.args[0] for record in caplog.records if "could be started" in record.message]
    assert pauses == [0.5, 1.0]


def test_a_child_that_cannot_be_spawned_leaves_no_descriptor(trouble):
    before = open_descriptors()
    for _ in TROUBLE:
        with pytest.raises(OSError, match=r"allocate|unavailable"):
            Child([])
    assert open_descriptors() == before
