"""A business transaction with one enqueueing against the same transaction with a bare INSERT in its place.

Ours: BEGIN, one INSERT into a business table, one ``enqueue()`` of a job handle, COMMIT. Compared with: BEGIN,
the same INSERT, one INSERT by a Django cursor into a twin of the jobs table (its columns, defaults and indexes)
with the same columns and values, COMMIT. One client, through Django, in transactions a second; once while no
worker sleeps, and once while a session sleeps on the queue, so that each commit is followed by a wake-up.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from django.db import connection, transaction

from benchmarks.app.jobs import noop
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale, in_turns, rate
from benchmarks.tables import TWIN, empty, execute, make_twin
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import Session
from django_jobs.ids import uuid7

BUSINESS = "benchmark_business"
BARE_INSERT = (
    f"INSERT INTO {TWIN} (id, queue, type, payload, priority, tenant, max_attempts, context, run_at, status) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, statement_timestamp(), %s)"
)


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    make_twin()
    execute(f"CREATE TABLE {BUSINESS} (number int NOT NULL, name text NOT NULL)")
    awake = compare(scale, "nobody asleep", Goal(least=0.95))
    with sleeper() as session:
        asleep = compare(scale, "somebody asleep", between=session.take_notification)
    execute(f"DROP TABLE {BUSINESS}, {TWIN}")
    return [awake, asleep]


def compare(scale: Scale, circumstance: str, *goals: Goal, between: Callable[[], object] = lambda: None) -> Figure:
    empty("default", TWIN, BUSINESS)
    times = scale.of(1000, 200)

    def side(second: Callable[[int], object]) -> Callable[[], float]:
        def one() -> float:
            between()
            return rate(times, lambda: transactions(times, second))

        return one

    turns = in_turns({"enqueue": side(enqueue), "bare": side(insert)}, scale.of(11, 3))
    return Figure.comparing(circumstance, turns["enqueue"], "/s", "bare INSERT", turns["bare"], *goals)


def transactions(times: int, second: Callable[[int], object]) -> None:
    for number in range(times):
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"INSERT INTO {BUSINESS} VALUES (%s, %s)", [number, "an order"])
            second(number)


def enqueue(number: int) -> None:
    noop.enqueue(number=number)


def insert(number: int) -> None:
    payload = json.dumps({"number": number})
    with connection.cursor() as cursor:
        cursor.execute(BARE_INSERT, [uuid7(), "default", "noop", payload, 0, "", 12, "{}", "pending"])


@contextmanager
def sleeper() -> Iterator[Session]:
    """What an idle worker's session does, and nobody who gets up when it is woken."""
    with closing(open_session(EngineConfig(alias="default", worker="sleeper"))) as session:
        assert session.can_listen()
        assert session.lie_down(["default"])
        yield session
