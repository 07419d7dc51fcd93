"""``enqueue_many()`` of 100,000 jobs with one integer each, against COPY of rows that are encoded already.

Both write the same rows into the same empty table of jobs, each in one transaction, through Django's
connection. Ours starts from the payloads as Python dicts and returns 100,000 results; COPY starts from chunks of
1,000 lines of text.
"""

from collections.abc import Sequence

from django.db import connection, transaction
from django.utils import timezone

from benchmarks.app.jobs import noop
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale, in_turns, rate
from benchmarks.tables import come_to_rest, empty
from django_jobs.ids import uuid7

CHUNK = 1000
COPY = (
    "COPY django_jobs_job (id, queue, type, payload, priority, tenant, max_attempts, context, run_at, status) "
    "FROM STDIN"
)


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    rows = scale.of(100_000, 10_000)
    payloads = [{"number": number} for number in range(rows)]
    chunks = encoded(rows)

    def enqueue_many() -> float:
        start_empty()
        return rate(rows, lambda: noop.enqueue_many(payloads))

    def bare_copy() -> float:
        start_empty()
        return rate(rows, lambda: copy(chunks))

    turns = in_turns({"ours": enqueue_many, "copy": bare_copy}, scale.of(7, 2))
    empty()
    goals = Goal(least=0.45), Goal(of="value", least=90_000)
    return [Figure.comparing(f"{rows:,} jobs", turns["ours"], "rows/s", "COPY", turns["copy"], *goals)]


def start_empty() -> None:
    empty()
    come_to_rest()


def encoded(rows: int) -> Sequence[bytes]:
    now = timezone.now().isoformat()
    lines = [
        f'{uuid7().hex}\tdefault\tnoop\t{{"number":{number}}}\t0\t\t12\t{{}}\t{now}\tpending\n'
        for number in range(rows)
    ]
    return ["".join(lines[start : start + CHUNK]).encode() for start in range(0, rows, CHUNK)]


def copy(chunks: Sequence[bytes]) -> None:
    with transaction.atomic(), connection.cursor() as cursor, cursor.copy(COPY) as copying:
        for chunk in chunks:
            copying.write(chunk)
