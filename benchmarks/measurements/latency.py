"""From the commit of an enqueueing to the start of its handler, with one idle worker process: 100 jobs 200 ms apart.

The enqueuer takes the time in the first ``on_commit`` hook, the handler in its first line, both by the
machine's monotonic clock. On PostgreSQL the worker sleeps between two jobs and is woken; on SQLite it looks for
changes.

Beside it, where it is installed: PgQueuer with an ``async def`` handler. Its notification is part of the
transaction, and the time is taken when the COMMIT has returned.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import quantiles

import psycopg
from django.db import transaction

from benchmarks import children
from benchmarks.app.jobs import stamp, stamp_async
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.peers import pgqueuer
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
    theirs = pgqueuer_started_after(jobs)
    return [
        *figures("def", started_after(stamp, jobs, "default"), GOALS, theirs),
        *figures("async def", started_after(stamp_async, jobs, "default"), GOALS, theirs),
        *figures("def, SQLite", started_after(stamp, jobs, "sqlite"), {}),
        *figures("async def, SQLite", started_after(stamp_async, jobs, "sqlite"), {}),
    ]


def started_after(handler: JobHandle, jobs: int, alias: str) -> list[float]:
    """How many milliseconds after its commit each job was started."""
    empty(alias)
    with tempfile.TemporaryDirectory() as folder, jobs_in(alias):
        stamps = Path(folder) / "stamps"
        with children.worker(alias=alias, stamps=stamps):
            return latencies(partial(enqueue, handler, alias), jobs, stamps)


def pgqueuer_started_after(jobs: int) -> list[float]:
    """The same of PgQueuer; empty where it is not installed."""
    if not pgqueuer.VERSION:
        print("PgQueuer is not installed: pip install --group peers", file=sys.stderr)
        return []
    url = os.environ["BENCHMARK_POSTGRESQL"]
    asyncio.run(pgqueuer.install(url))
    with tempfile.TemporaryDirectory() as folder, closing(psycopg.connect(url, autocommit=True)) as connection:
        stamps = Path(folder) / "stamps"
        with children.ended_after(children.spawn("-m", "benchmarks.peers.pgqueuer", url, stamps=stamps)):
            return latencies(partial(pgqueuer.enqueue, connection), jobs, stamps)


def latencies(enqueue: Callable[[int], int], jobs: int, stamps: Path) -> list[float]:
    """``enqueue`` returns the instant of its commit."""
    enqueue(-1)
    wait_for(lambda: -1 in read_stamps(stamps), timeout=30, message="the worker")
    time.sleep(REST)
    committed = []
    for number in range(jobs):
        committed.append(enqueue(number))
        time.sleep(APART)
    wait_for(lambda: len(read_stamps(stamps)) > jobs, timeout=30, message="the last job")
    started = read_stamps(stamps)
    return [(started[number] - committed[number]) / 1e6 for number in range(jobs)]


def enqueue(handler: JobHandle, alias: str, number: int) -> int:
    committed: list[int] = []
    with transaction.atomic(using=alias):
        transaction.on_commit(lambda: committed.append(now_ns()), using=alias)
        handler.enqueue(number=number)
    return committed[0]


def figures(
    name: str, ours: Sequence[float], goals: Mapping[str, tuple[Goal, ...]], theirs: Sequence[float] = ()
) -> list[Figure]:
    compared = cuts(theirs) if theirs else {}
    return [
        Figure(
            what=f"{name}, {label}",
            value=value,
            unit="ms",
            against=f"PgQueuer {pgqueuer.VERSION}",
            compared=compared.get(label),
            goals=goals.get(label, ()),
        )
        for label, value in cuts(ours).items()
    ]


def cuts(latencies: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(latencies, n=100, method="inclusive")
    return {"p50": cuts[49], "p90": cuts[89], "p99": cuts[98], "max": max(latencies)}
