"""The memory of one worker process: idle, after 100,000 jobs, and its slope over ten minutes of mixed jobs.

Idle: it has run one job of each type. Mixed: threads and tasks, some in a transaction with their end, some that query
the database, some that fail and are buried, 120 a second in all, with payloads of a kilobyte. The slope is that of the
line through one look a second, the first minute left out. RSS from /proc: without it there is nothing to say.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression

from benchmarks import children
from benchmarks.app.jobs import MIXED, noop
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.measurements.memory import megabytes
from benchmarks.rounds import Scale
from benchmarks.tables import empty
from django_jobs.models import Job
from tests.waiting import wait_for

REST = 3.0
OF_EACH = 20
HOUR = 3600
MOST_GROWTH = Goal(of="value", most=3.0)
MOST_SLOPE = Goal(of="value", most=6.0)  # a megabyte in the ten minutes


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    if not Path("/proc/self/smaps_rollup").exists():
        return []
    empty("default", "django_jobs_dead_job")
    jobs = scale.of(100_000, 2_000)
    with children.worker(silent=True) as worker:
        enqueue_mixed(1)
        idle = at_rest(worker.pid)
        noop.enqueue_many({"number": number} for number in range(jobs))
        after = at_rest(worker.pid)
        looks = looks_while_mixed_jobs_run(worker.pid, scale.of(600, 10))
        warm = looks[scale.of(60, 0) :]
        slope = linear_regression([second for second, _ in warm], [size for _, size in warm]).slope
    return [
        Figure(what="idle", value=idle, unit="MB"),
        Figure(what=f"after {jobs:,} jobs", value=after, unit="MB", against="idle", compared=idle),
        Figure(what="more than idle", value=after - idle, unit="MB", goals=(MOST_GROWTH,)),
        Figure(what="slope over mixed jobs", value=slope * HOUR, unit="MB/hour", goals=(MOST_SLOPE,)),
        Figure.of("while they run", [size for _, size in warm], "MB"),
    ]


def enqueue_mixed(of_each: int) -> None:
    for handler in MIXED:
        handler.enqueue_many({"number": number, "text": "x" * 1000} for number in range(of_each))


def at_rest(pid: int) -> float:
    wait_for(lambda: not Job.objects.exists(), timeout=300, message="all jobs to be run")
    time.sleep(REST)
    return megabytes(pid)["RSS"]


def looks_while_mixed_jobs_run(pid: int, seconds: int) -> Sequence[tuple[float, float]]:
    began = time.monotonic()
    looks = []
    for second in range(seconds):
        enqueue_mixed(OF_EACH)
        looks.append((time.monotonic() - began, megabytes(pid)["RSS"]))
        time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    return looks
