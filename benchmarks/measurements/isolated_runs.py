"""What ``isolation="process"`` adds to a run: a job that does nothing, in a warm process and in one that has to start.

Compared with the same handler called in the thread. Nothing touches a database.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from benchmarks.app.jobs import noop
from benchmarks.databases import Databases
from benchmarks.figures import Figure
from benchmarks.rounds import Scale, in_turns
from django_jobs.clock import DatabaseClock
from django_jobs.engines.values import ClaimedJob
from django_jobs.ids import uuid7
from django_jobs.policy import JobType
from django_jobs.worker.executor import Executor
from django_jobs.worker.isolation import Isolation
from django_jobs.worker.running import Run

CLAIMED = ClaimedJob(uuid7(), 1, "noop", '{"number": 1}', "default", 0, "", 1, 1, 0, "{}", False)


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    rounds = scale.of(80, 10)
    isolation = Isolation(DatabaseClock())
    executor = Executor(DatabaseClock().milliseconds, lambda: True)
    isolated = replace(noop.job_type, isolation="process")
    turns = in_turns(
        {
            "warm": timed(lambda: isolation.run(Run(CLAIMED, isolated))),
            "thread": timed(lambda: executor.run(Run(CLAIMED, noop.job_type), rested=True)),
        },
        rounds,
    )
    isolation.close()
    cold = [timed(lambda: once(isolated))() for _ in range(scale.of(10, 1))]
    return [
        Figure.comparing("warm process", turns["warm"], "ms", "thread", turns["thread"]),
        Figure.of("cold process", cold, "ms"),
    ]


def once(job_type: JobType) -> None:
    isolation = Isolation(DatabaseClock())
    isolation.run(Run(CLAIMED, job_type))
    isolation.close()


def timed(work: Callable[[], object]) -> Callable[[], float]:
    def one() -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1000

    return one
