"""A waiting queue drained by 1, 2 and 4 processes of ``runjobworker --processes``, 10 slots each, on PostgreSQL.

Two queues: jobs that do nothing, where the work is the library's and the server's, and jobs that compute for a
millisecond of Python, where it is the handlers'. Compared with one process under the same supervisor. Rates are
read from the history, from the first batch's finish to the last one's, so no start counts; expect nothing beyond the
number of cores.
"""

from functools import partial

from benchmarks import children
from benchmarks.app.jobs import compute, noop
from benchmarks.databases import Databases
from benchmarks.figures import Figure
from benchmarks.measurements.drain import SLOTS, finishing
from benchmarks.rounds import Scale, in_turns
from django_jobs.handle import JobHandle

PROCESSES = (1, 2, 4)


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    rounds = scale.of(3, 1)
    return [
        *scaling("no-op", noop, scale.of(60_000, 3_000), rounds),
        *scaling("1 ms of Python", compute, scale.of(10_000, 1_000), rounds),
    ]


def scaling(name: str, handler: JobHandle, jobs: int, rounds: int) -> list[Figure]:
    sides = {
        str(number): finishing(handler, jobs, partial(children.drain, "--processes", str(number), *SLOTS))
        for number in PROCESSES
    }
    turns = in_turns(sides, rounds, warm_up=False)
    alone, *others = (str(number) for number in PROCESSES)
    return [
        Figure.of(f"{name}, 1 process", turns[alone], "jobs/s"),
        *(
            Figure.comparing(f"{name}, {number} processes", turns[number], "jobs/s", "1 process", turns[alone])
            for number in others
        ),
    ]
