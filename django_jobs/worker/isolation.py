"""Runs handlers with ``isolation="process"``: each in a spawned process that can be killed.

A process serves one run after the other and is kept for the next one; after a time-out, a crash or an order to stop
it is killed and never used again. The run's thread in the worker waits for it, so slots, leases and outcomes are
those of any other run. The interpreter and Django start anew in it, which takes a second or so the first time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import Any

from django.db import connections

from django_jobs import clock
from django_jobs.clock import DatabaseClock
from django_jobs.exceptions import RunProcessDied
from django_jobs.logs import get_logger
from django_jobs.policy import MOST_IDLE
from django_jobs.polling import wait_readable

from .channel import Channel, Message
from .death import cause_of_death
from .endings import HAND_BACK_DELAY, died, failed, handed_back, timed_out
from .executor import Ended
from .handover import decode_ending, encode_job
from .relaunch import command_line, environment
from .running import Run

logger = get_logger("django_jobs.worker")

TURN_SECONDS = 0.1
START_SECONDS = 120.0
END_SECONDS = 2.0
# What such handlers leak goes with their process.
MOST_RUNS = 100


class RunProcess:
    """One spawned process; used by one thread at a time."""

    def __init__(self) -> None:
        self.runs = 0
        self._channel, theirs = Channel.pair()
        try:
            with theirs:
                self._popen = _spawned(theirs.fileno())
        except BaseException:
            self._channel.close()
            raise

    def send(self, **message: Any) -> bool:
        """False if the process is gone or does not read; part of the message may have gone over."""
        return self._channel.send(**message)

    def receive(self) -> list[Message]:
        return self._channel.receive(TURN_SECONDS)

    @property
    def alive(self) -> bool:
        """The end of the channel shows a death at once; a program that inherited it hides that."""
        return self._channel.open and self._popen.poll() is None

    def is_silent(self) -> bool:
        """Has all been read that it has said?"""
        return not (self._channel.open and wait_readable(self._channel.fileno(), timeout=0))

    def kill(self) -> int:
        """Kill and reap it, and what it has started; returns how it ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        returncode = self._popen.wait()
        self._channel.close()
        return returncode

    def reap(self) -> int:
        """It died by itself; returns how."""
        try:
            returncode = self._popen.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            returncode = None
        killed = self.kill()
        return killed if returncode is None else returncode

    def end(self) -> None:
        self.send(end=True)
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(END_SECONDS)
        self.kill()


def _spawned(inherited: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        command_line("--isolated", str(inherited)),
        env=environment(),
        pass_fds=(inherited,),
        stdin=subprocess.DEVNULL,
        # A group of its own: what the handler has started is killed with it.
        start_new_session=True,
    )


class Isolation:
    """Thread-safe. ``run`` is called in the run's thread and never raises."""

    def __init__(self, database_clock: DatabaseClock) -> None:
        self._clock = database_clock
        self._lock = threading.Lock()
        self._idle: list[RunProcess] = []

    def run(self, run: Run) -> Ended:
        run.stop = _be_looked_at
        try:
            process = self._started(run)
        except BaseException as error:  # noqa: BLE001 - whatever keeps it from starting ends this run, not the thread
            return failed(run, error)
        if process is None:
            return self._stopped(run)
        if run.lost:
            self._keep(process)
            return None
        try:
            return self._run_in(process, run)
        except BaseException as error:  # noqa: BLE001 - the same for whatever the process may answer
            process.kill()
            return failed(run, error)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def _started(self, run: Run) -> RunProcess | None:
        """An idle process, or a new one once it is ready. None: the run is to stop."""
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.alive:
                    return process
                process.kill()
        process = RunProcess()
        patience = clock.monotonic() + START_SECONDS
        while process.alive and clock.monotonic() < patience and not run.must_stop:
            if any(message.get("ready") for message in process.receive()):
                return process
        if run.must_stop:
            process.kill()
            return None
        raise RunProcessDied(
            f"The process for the handler did not start: {cause_of_death(process.reap())}. Its output is in the "
            "worker's log."
        )

    def _run_in(self, process: RunProcess, run: Run) -> Ended:
        run.start()
        ahead = (self._clock.now() - clock.now()).total_seconds()
        sent = process.send(job=encode_job(run.job), databases=_databases(), clock_ahead=ahead)
        if not sent and process.alive:
            raise RunProcessDied("The process for the handler stood still and did not take the job.")
        told: tuple[bool, bool] = (False, False)
        while True:
            alive = process.alive
            for message in process.receive():
                if "ended" in message:
                    self._keep(process)
                    return decode_ending(message["ended"])
                if message.get("token") == run.job.token:
                    run.progress = message.get("progress")
            if run.must_stop:
                process.kill()
                return self._stopped(run)
            if not alive and process.is_silent():
                return self._died(process, run)
            if told != (run.cancelled, run.lost):
                told = (run.cancelled, run.lost)
                process.send(token=run.job.token, cancelled=run.cancelled, lost=run.lost)

    def _keep(self, process: RunProcess) -> None:
        process.runs += 1
        with self._lock:
            if process.runs < MOST_RUNS and len(self._idle) < MOST_IDLE:
                self._idle.append(process)
                return
        process.end()

    def _stopped(self, run: Run) -> Ended:
        if run.ended:
            return None
        if run.stopping == "shutdown":
            return handed_back(run.job, HAND_BACK_DELAY)
        return failed(run, timed_out(run))

    def _died(self, process: RunProcess, run: Run) -> Ended:
        cause = cause_of_death(process.reap())
        logger.error("The process of job %s (%s) died: %s.", run.job.id, run.job.type, cause)
        return died(run, RunProcessDied(f"The handler's process died: {cause}."))


def _be_looked_at() -> None:
    """The run's thread looks at ``stopping`` each turn by itself."""


def _databases() -> dict[str, str]:
    return {alias: str(connections[alias].settings_dict["NAME"]) for alias in connections}
