"""A supervisor that cannot start a process goes on, tries again, and loses nothing on the way."""

import errno
import json
import logging
import os
import subprocess
import sys
from datetime import timedelta

import pytest

from django_jobs.worker.child import Child
from django_jobs.worker.freeing import Freer
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


SAYS = """
import json, os, sys
from pathlib import Path
said = json.loads(sys.argv[1]) if not Path(sys.argv[2]).exists() else {}
Path(sys.argv[2]).touch()
os.write(int(sys.argv[-1].split(",")[0]), json.dumps(said).encode() + b"\\n")
"""


@pytest.fixture
def supervise(monkeypatch, tmp_path):
    """A supervisor whose first child says something and ends with 0, its second one says nothing. Returns whom it
    freed.
    """
    freed = []
    monkeypatch.setattr(Freer, "free", lambda self, worker, cause, started: freed.append((worker, cause)))

    def supervise(**said):
        words = [sys.executable, "-c", SAYS, json.dumps(said), str(tmp_path / "second")]
        monkeypatch.setattr("django_jobs.worker.child.command_line", lambda *options: [*words, *options])
        options = SupervisorOptions(processes=1, child_options=[], shutdown_timeout=timedelta(seconds=5), drain=True)
        assert Supervisor(options).run() == 0
        return freed

    return supervise


def test_a_child_that_ends_as_planned_is_no_news(supervise, caplog):
    with caplog.at_level(logging.INFO, "django_jobs.supervisor"):
        assert supervise(worker="w-1", retiring="10 jobs", ended="10 jobs") == []
    (record,) = [record for record in caplog.records if "w-1" in record.getMessage()]
    assert record.levelno == logging.INFO
    assert "(w-1) has ended: 10 jobs." in record.getMessage()


def test_a_child_that_ends_with_0_before_it_had_finished_has_died(supervise, caplog):
    """As by ``os._exit(0)`` in a handler: what it held is to be freed."""
    assert supervise(worker="w-1", retiring="10 jobs") == [("w-1", "worker died: exit code 0")]
    (record,) = [record for record in caplog.records if "w-1" in record.getMessage()]
    assert record.levelno == logging.WARNING
