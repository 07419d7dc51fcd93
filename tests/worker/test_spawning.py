"""A supervisor that cannot start a process, or whose processes do not live, goes on, tries again after growing pauses,
and loses nothing on the way.
"""

import errno
import json
import logging
import os
import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest

from django_jobs import clock
from django_jobs.worker import exit_codes, supervisor
from django_jobs.worker.child import Child
from django_jobs.worker.freeing import Freer
from django_jobs.worker.probes import serving_probes
from django_jobs.worker.supervisor import Supervisor, SupervisorOptions
from tests.process.test_probes import status
from tests.processes import open_descriptors

TROUBLE = [errno.EAGAIN, errno.ENOMEM]

SAYS = """
import json, os, sys
from pathlib import Path
said = json.loads(sys.argv[1]) if not Path(sys.argv[2]).exists() else {"worker": "w-2", "ended": "drained"}
Path(sys.argv[2]).touch()
os.write(int(sys.argv[-1].split(",")[0]), json.dumps(said).encode() + b"\\n")
"""


def options(**more):
    given = {"processes": 1, "child_options": [], "shutdown_timeout": timedelta(seconds=5)} | more
    return SupervisorOptions(**given)


@pytest.fixture(autouse=True)
def first_words(monkeypatch, tmp_path):
    """``first_words(worker=…)``: the first child says this and ends with 0. All others end after a drain."""

    def first_words(**said):
        words = [sys.executable, "-c", SAYS, json.dumps(said), str(tmp_path / "second")]
        monkeypatch.setattr("django_jobs.worker.child.command_line", lambda *options: [*words, *options])

    first_words(worker="w-1", ended="drained")
    return first_words


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
    before = open_descriptors()
    assert Supervisor(options(drain=True)).run() == 0
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


@pytest.fixture
def supervise(first_words, monkeypatch):
    """A supervisor whose first child says something and ends with 0. Returns whom it freed."""
    freed = []
    monkeypatch.setattr(Freer, "free", lambda self, worker, cause, started: freed.append((worker, cause)))

    def supervise(**said):
        first_words(**said)
        assert Supervisor(options(drain=True)).run() == 0
        return freed

    return supervise


def test_a_child_that_ends_as_planned_is_no_news(supervise, caplog):
    with caplog.at_level(logging.INFO, "django_jobs.supervisor"):
        assert supervise(worker="w-1", retiring="10 jobs", ended="10 jobs") == []
    (record,) = [record for record in caplog.records if "w-1" in record.getMessage()]
    assert record.levelno == logging.INFO
    assert "(w-1) has ended: 10 jobs." in record.getMessage()


@pytest.mark.parametrize("more", [{}, {"retiring": "10 jobs"}], ids=["at work", "to be replaced"])
def test_a_child_that_ends_with_0_before_it_had_finished_has_died_and_another_one_drains(supervise, caplog, more):
    """As by ``os._exit(0)`` in a handler: what it held is to be freed, and what is left is to be done."""
    assert supervise(worker="w-1", **more) == [("w-1", "worker died: exit code 0")]
    (record,) = [record for record in caplog.records if "w-1" in record.getMessage()]
    assert record.levelno == logging.WARNING


STANDS_STILL = """
import os, signal, sys
os.write(int(sys.argv[-1].split(",")[0]), b'{"worker": "w-1"}\\n')
os.kill(os.getppid(), signal.SIGTERM)
signal.pause()
"""


def test_a_supervisor_that_had_to_kill_a_child_that_did_not_stop_in_time_ends_with_exit_code_70(monkeypatch):
    monkeypatch.setattr(
        "django_jobs.worker.child.command_line", lambda *options: [sys.executable, "-c", STANDS_STILL, *options]
    )
    monkeypatch.setattr(Freer, "free", lambda *_: None)
    monkeypatch.setattr(supervisor, "LAST_WORDS_SECONDS", 0.5)
    killed, kill = [], Child.kill
    monkeypatch.setattr(Child, "kill", lambda child, because: (killed.append(because), kill(child, because)))
    assert Supervisor(options(shutdown_timeout=timedelta(seconds=0.5))).run() == exit_codes.STUCK
    assert set(killed) == {"by its supervisor: it did not stop in time"}


class StubChild(Child):
    """Starts nothing. Dies when ``dies`` is called."""

    def __init__(self, options):
        self._popen = SimpleNamespace(pid=4711, returncode=None)
        self.ledger = SimpleNamespace(started=frozenset)
        self.worker, self.state, self.silent_for, self._killed_because = "w-1", {}, 0.0, ""
        self.born_at = clock.monotonic()

    def dies(self, returncode, **said):
        self.state |= said
        self._popen.returncode = returncode

    def listen(self):
        self.silent_for = 0.0

    def has_ended(self):
        return self._popen.returncode is not None

    def close(self):
        pass


class Timeline:
    """Turns of a supervisor, with the clock in our hands."""

    def __init__(self, monkeypatch, **more):
        self.now, self.born = 1000.0, []
        monkeypatch.setattr(clock, "monotonic", lambda: self.now)
        monkeypatch.setattr(supervisor, "Child", self.spawn)
        self.supervisor = Supervisor(options(**more))
        self.supervisor._staff()

    def spawn(self, child_options):
        self.born.append(StubChild(child_options))
        return self.born[-1]

    def pause_after(self, *, age=0.0, **death):
        """Seconds until another one is started, of whose turns each is looked at."""
        self.now += age
        died_at, count = self.now, len(self.born)
        self.born[-1].dies(**death)
        self.supervisor._turn()
        while len(self.born) == count:
            self.now += 0.25
            self.supervisor._turn()
        return self.now - died_at


@pytest.fixture
def timeline(monkeypatch):
    timelines = []

    def timeline(**more):
        timelines.append(Timeline(monkeypatch, **more))
        return timelines[-1]

    yield timeline
    for one in timelines:
        one.supervisor._poke.close()


@pytest.mark.parametrize("code", [3, -9, 0])
def test_no_child_is_started_before_a_pause_is_over_that_grows_up_to_half_a_minute(timeline, code):
    """A handler may end its process with 0 as well."""
    line = timeline()
    assert [line.pause_after(returncode=code) for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert line.pause_after(returncode=code, age=10.25) == 0, "that one did its time"
    assert [line.pause_after(returncode=code) for _ in range(2)] == [0.5, 1]


def test_a_child_that_ended_in_order_is_replaced_at_once_however_young_it_was(timeline):
    line = timeline()
    assert [line.pause_after(returncode=3) for _ in range(2)] == [0.5, 1]
    assert line.pause_after(returncode=0, ended="it was told to") == 0
    assert line.pause_after(returncode=3) == 0.5


def test_a_supervisor_is_ready_if_a_child_is_and_live_if_it_turns_over(timeline):
    line = timeline(processes=2)
    with serving_probes("127.0.0.1", 0, line.supervisor.vitals) as port:

        def answers():
            return status(port, "/live"), status(port, "/ready")

        assert answers() == (200, 503)
        line.born[1].state["ready"] = True
        assert answers() == (200, 200)
        line.now += 9.75
        assert answers() == (200, 200)
        line.now += 0.25
        assert answers() == (503, 503)
        line.supervisor._turn()
        assert answers() == (200, 200)


def test_where_modules_change_nobody_waits_for_half_a_minute(timeline):
    line = timeline(reload=True)
    assert [line.pause_after(returncode=3) for _ in range(5)] == [0.5, 1, 2, 2, 2]
