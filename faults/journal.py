"""What happened, told by the processes under attack through files that no fault of a database can reach.

One line an event, appended whole. Instants are of the machine's monotonic clock, so those of two processes compare.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from faults.evidence import NotedRun

if TYPE_CHECKING:
    from django_jobs import RunningJob

VARIABLE = "FAULTS_JOURNAL"
RUNS, ACKNOWLEDGED, REFUSED = "runs", "acknowledged", "refused"


def now() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def write(name: str, *words: object) -> None:
    os.write(_descriptor(_path(name)), f"{' '.join(map(str, words))}\n".encode())


def read(name: str) -> list[list[str]]:
    """Lines that were written whole."""
    path = _path(name)
    return [line.split() for line in path.read_text().split("\n")[:-1]] if path.exists() else []


@contextmanager
def noted(run: RunningJob) -> Iterator[None]:
    """Note the start and the end of a run, however it ends."""
    _note("start", run)
    try:
        yield
    finally:
        _note("end", run)


def note_death(run: RunningJob) -> None:
    """The process is about to end by the handler's doing."""
    _note("die", run)


def _note(event: str, run: RunningJob) -> None:
    write(RUNS, now(), event, run.id, run.fencing_token, run.attempt, os.getpid())


def noted_runs(deaths: Iterable[tuple[int, float]] = ()) -> list[NotedRun]:
    """In the order of their tokens. Whatever a process runs ends when it dies; ``deaths`` are pids and instants."""
    runs: dict[str, NotedRun] = {}
    for instant, event, job_id, token, attempt, pid in read(RUNS):
        if event == "start":
            runs[token] = NotedRun(
                job_id=job_id, token=int(token), attempt=int(attempt), pid=int(pid), started_at=float(instant)
            )
        elif event == "end":
            runs[token].ended_at = float(instant)
    for dead, died_at in (*deaths, *noted_deaths().items()):
        for run in runs.values():
            if run.pid == dead and (run.ended_at is None or run.ended_at > died_at):
                # It may have begun in the moment between the note and the death.
                run.ended_at = max(died_at, run.started_at)
    return sorted(runs.values(), key=lambda run: run.token)


def noted_deaths() -> dict[int, float]:
    """Processes that a handler ended, and when."""
    return {int(pid): float(instant) for instant, event, _, _, _, pid in read(RUNS) if event == "die"}


def _path(name: str) -> Path:
    return Path(os.environ[VARIABLE]) / name


@cache
def _descriptor(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
