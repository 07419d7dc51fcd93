"""Schedules to measure, the processes that fire them, and what the record of their slots says."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from statistics import quantiles

from django.db import connection

from benchmarks import children
from benchmarks.figures import Figure, Goal
from benchmarks.tables import empty
from django_jobs.models import Schedule, ScheduleSlot
from django_jobs.models.schedule import Definition

SECOND = timedelta(seconds=1)
SCHEDULER = ("-m", "django", "runjobscheduler", "--verbosity", "0")


def forget() -> None:
    empty("default", Schedule._meta.db_table, ScheduleSlot._meta.db_table)


def make(count: int, next_run_at: datetime, **fields: object) -> None:
    """Planned for this instant, as if a scheduler had done it."""
    Schedule.objects.bulk_create(
        (Schedule(name=f"s{number:05}", type="noop", payload={"number": number}, **fields) for number in range(count)),
        batch_size=1000,
    )
    Schedule.objects.update(planned=Definition(), next_run_at=next_run_at)


def spawn_scheduler() -> subprocess.Popen[str]:
    return children.spawn(*SCHEDULER)


@contextmanager
def scheduler() -> Iterator[subprocess.Popen[str]]:
    with children.ended_after(spawn_scheduler()) as process:
        yield process


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def whole_second(ahead: float) -> datetime:
    return database_now().replace(microsecond=0) + timedelta(seconds=ahead)


def delays() -> list[float]:
    """Milliseconds from each fired slot to the statement that recorded it, by the database's clock."""
    fired = ScheduleSlot.objects.filter(outcome="fired").values_list("slot", "at")
    return [(at - slot) / timedelta(milliseconds=1) for slot, at in fired]


def delay_figures(name: str, values: list[float], goals: Mapping[str, tuple[Goal, ...]]) -> list[Figure]:
    cuts = quantiles(values, n=100, method="inclusive")
    shown = {"p50": cuts[49], "p99": cuts[98], "max": max(values)}
    return [
        Figure(what=f"{name}, {label}", value=value, unit="ms", goals=goals.get(label, ()))
        for label, value in shown.items()
    ]
