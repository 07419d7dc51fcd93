"""Gathers the evidence: from the tables, the business data and the journal."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from django.db import connection

from django_jobs.models import DeadJob, Job, JobHistory
from faults import journal
from faults.app.models import Effect, Order
from faults.evidence import Ended, Evidence, Silence
from tests.waiting import wait_for

SESSION_SECONDS = 10


def gather(lease: float, silences: Sequence[Silence]) -> Evidence:
    effects = list(Effect.objects.values_list("job_id", "atomic"))
    return Evidence(
        lease=lease,
        acknowledged=frozenset(job_id for (job_id,) in journal.read(journal.ACKNOWLEDGED)),
        orders=frozenset(map(str, Order.objects.values_list("job_id", flat=True))),
        unfinished=frozenset(map(str, Job.objects.values_list("pk", flat=True))),
        ended=[*_history(), *_dead()],
        effects=Counter(str(job_id) for job_id, atomic in effects if not atomic),
        atomic_effects=Counter(str(job_id) for job_id, atomic in effects if atomic),
        runs=journal.noted_runs((silence.pid, silence.since) for silence in silences if silence.until is None),
        silences=silences,
        deadly=journal.noted_deaths(),
        sessions=_left_sessions(),
        epoch=_database_time() - journal.now(),
    )


def _history() -> Iterator[Ended]:
    for row in JobHistory.objects.values("job_id", "type", "status", "attempts", "errors", "result"):
        yield Ended(
            job_id=str(row["job_id"]),
            type=row["type"],
            status=row["status"],
            attempts=row["attempts"],
            errors=row["errors"],
            result=row["result"],
        )


def _dead() -> Iterator[Ended]:
    for row in DeadJob.objects.values("pk", "type", "attempts", "errors"):
        yield Ended(
            job_id=str(row["pk"]), type=row["type"], status="dead", attempts=row["attempts"], errors=row["errors"]
        )


def _database_time() -> float:
    if connection.vendor != "postgresql":
        return time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        return float(cursor.fetchone()[0])


def _left_sessions() -> list[str]:
    """The server needs a moment to notice the end of a client."""
    if connection.vendor != "postgresql":
        return []
    with suppress(AssertionError):
        wait_for(lambda: not list(_sessions()), SESSION_SECONDS)
    return list(_sessions())


def _sessions() -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, application_name, state, query FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        yield from map(str, cursor.fetchall())
