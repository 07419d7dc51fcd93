"""From the commit of an enqueueing to the start of its handler, with one idle worker process: 100 jobs 200 ms apart.

The enqueuer takes the time in the first ``on_commit`` hook, the handler in its first line, both by the
machine's monotonic clock. On PostgreSQL the worker sleeps between two jobs and is woken; on SQLite it looks for
changes.
"""

import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import quantiles

from django.db import transaction

from benchmarks import children
from benchmarks.app.jobs import stamp, stamp_async
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from benchmarks.stamps import now_ns, read_stamps
from benchmarks.tables import empty, jobs_in
from django_jobs.handle import JobHandle
from tests.waiting import wait_for

GOALS = {"p50": (Goal(of="value", most=3),), "p99": (Goal(of="value", most=15),)}
APART = 0.2
REST = 2.0


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    jobs = scale.of(100, 15)
    return [
        *figures("def", started_after(stamp, jobs, "default"), GOALS),
        *figures("async def", started_after(stamp_async, jobs, "default"), GOALS),
        *figures("def, SQLite", started_after(stamp, jobs, "sqlite"), {}),
        *figures("async def, SQLite", started_after(stamp_async, jobs, "sqlite"), {}),
    ]


def started_after(handler: JobHandle, jobs: int, alias: str) -> list[float]:
    """How many milliseconds after its commit each job was started."""
    empty(alias)
    with tempfile.TemporaryDirectory() as folder, jobs_in(alias):
        stamps = Path(folder) / "stamps"
        with children.worker(alias=alias, stamps=stamps):
            enqueue(handler, -1, alias, {})
            wait_for(lambda: -1 in read_stamps(stamps), timeout=30, message="the worker")
            time.sleep(REST)
            committed: dict[int, int] = {}
            for number in range(jobs):
                enqueue(handler, number, alias, committed)
                time.sleep(APART)
            wait_for(lambda: len(read_stamps(stamps)) > jobs, timeout=30, message="the last job")
        started = read_stamps(stamps)
    return [(started[number] - committed[number]) / 1e6 for number in range(jobs)]


def enqueue(handler: JobHandle, number: int, alias: str, committed: dict[int, int]) -> None:
    with transaction.atomic(using=alias):
        transaction.on_commit(partial(note, committed, number), using=alias)
        handler.enqueue(number=number)


def note(committed: dict[int, int], number: int) -> None:
    committed[number] = now_ns()


def figures(name: str, latencies: list[float], goals: Mapping[str, tuple[Goal, ...]]) -> list[Figure]:
    cuts = quantiles(latencies, n=100, method="inclusive")
    values = {"p50": cuts[49], "p90": cuts[89], "p99": cuts[98], "max": max(latencies)}
    return [
        Figure(what=f"{name}, {label}", value=value, unit="ms", goals=goals.get(label, ()))
        for label, value in values.items()
    ]
