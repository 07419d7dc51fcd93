"""The claim of 50 urgent jobs beside 2,000,000 others, against the same claim in a table of only those 50.

The others: 500,000 each of pending in another queue, pending with a lower priority in the same queue,
scheduled in another queue, and scheduled with a higher priority in the same queue. The statement is the worker's
own, prepared as in a worker, in a transaction that is rolled back; both tables are vacuumed and analysed before
each round. Milliseconds, from sending the statement to having its rows.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import timedelta
from statistics import median
from typing import Any

import psycopg
from django.db import connections

from benchmarks.app.jobs import noop
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from benchmarks.tables import come_to_rest, empty, jobs_in
from django_jobs.engines.postgresql.connecting import connect
from django_jobs.engines.postgresql.queries import query

CLAIMED = 50
URGENT = 5
PATIENCE = timedelta(seconds=30)
PREPARE_ON_REQUEST = 2**31
OTHERS = """
INSERT INTO django_jobs_job (id, queue, type, payload, priority, max_attempts, run_at, status)
SELECT gen_random_uuid(), %s, 'noop', '{"number": 1}', %s, 12, statement_timestamp() + %s::interval, %s
  FROM generate_series(1, %s)
"""
NOW, LATER = "0", "1 day"
KINDS = [
    ("other", URGENT, NOW, "pending"),
    ("default", URGENT - 1, NOW, "pending"),
    ("other", URGENT, LATER, "scheduled"),
    ("default", URGENT + 1, LATER, "scheduled"),
]
TERMS = {
    "queues": ["default"],
    "limit": CLAIMED,
    "suspects": 1,
    "worker": "benchmark",
    "lease": timedelta(seconds=60),
    "patience": timedelta(hours=24),
}


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    others = scale.of(500_000, 10_000)
    add_others(others)
    for alias in ("default", "small"):
        with jobs_in(alias):
            noop.using(priority=URGENT).enqueue_many({"number": number} for number in range(CLAIMED))
    crowded, alone = claim_times(rounds=scale.of(7, 2), claims=scale.of(100, 30))
    empty("default")
    empty("small")
    what = f"beside {len(KINDS) * others:,}"
    return [Figure.comparing(what, crowded, "ms", "those 50 alone", alone, Goal(most=1.5))]


def add_others(count: int) -> None:
    empty("default")
    empty("small")
    with connections["default"].cursor() as cursor:
        for kind in KINDS:
            cursor.execute(OTHERS, [*kind, count])


def claim_times(rounds: int, claims: int) -> tuple[list[float], list[float]]:
    """The median of each round, of the crowded table and of the small one; claims take turns."""
    crowded, alone = [], []
    for _ in range(rounds):
        come_to_rest("default")
        come_to_rest("small")
        with ExitStack() as stack:
            sides = [claimer(stack, alias) for alias in ("default", "small")]
            for side in sides:
                for _ in range(10):
                    side()
            times = [[side() for side in sides] for _ in range(claims)]
        crowded.append(median(pair[0] for pair in times))
        alone.append(median(pair[1] for pair in times))
    return crowded, alone


def claimer(stack: ExitStack, alias: str) -> Callable[[], float]:
    connection: psycopg.Connection[Any] = stack.enter_context(closing(connect(alias, PATIENCE)))
    connection.prepare_threshold = PREPARE_ON_REQUEST
    claim = query("claim")

    def one() -> float:
        connection.execute("BEGIN")
        start = time.perf_counter()
        rows = connection.execute(claim, TERMS, prepare=True).fetchall()
        taken = time.perf_counter() - start
        connection.execute("ROLLBACK")
        if len(rows) != CLAIMED:
            raise RuntimeError(f"The claim took {len(rows)} jobs, not {CLAIMED}.")
        return taken * 1000

    return one
