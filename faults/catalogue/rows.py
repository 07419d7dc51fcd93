"""Rows and tables that are not as they should be."""

from datetime import UTC, datetime
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connection, transaction

from django_jobs.models import Job, JobHistory
from django_jobs.models.partitions import add_partitions
from faults.arena import Arena
from faults.fault import fault

LIMITED = "faults_limited"


@fault("postgresql")
def locked_row(arena: Arena) -> None:
    """Somebody holds the lock of a running job's row for a minute, past its end and its lease."""
    arena.start_workers(2)
    arena.start_load()
    for _ in arena.rounds(short=1, long=3):
        job_id = arena.order_begun(seconds=arena.lease / 2)
        with psycopg.connect(arena.database.url) as somebody:
            locked = somebody.execute("SELECT 1 FROM django_jobs_job WHERE id = %s FOR UPDATE", [job_id]).fetchall()
            arena.expect(locked, "The job had ended before its row was locked.")
            arena.pause(1.5 * arena.lease if arena.short else 60)
            arena.wait_until_work_goes_on()
            held = Job.objects.filter(pk=job_id, status="processing").exists()
            arena.expect(held, "The job was not held until its row was unlocked.")
        arena.wait_until_ended(job_id)


@fault("postgresql")
def missing_partition(arena: Arena) -> None:
    """The history has no partition, and the workers may make one."""
    drop_partitions()
    arena.start_workers(2, "--no-scheduler")
    arena.start_load()
    arena.wait_until_work_goes_on()
    arena.start_workers(1)
    arena.rounds_done = 1


@fault("postgresql", needs_server=True)
def missing_partition_without_right(arena: Arena) -> None:
    """The history has no partition, and the workers may not make one: jobs stay leased until an owner does."""
    drop_partitions()
    arena.start_workers(2, FAULTS_DATABASE=_limited_role(arena))
    arena.start_load()
    arena.pause(2 * arena.lease)
    arena.expect(Job.objects.filter(status="processing").exists(), "Nothing stayed leased.")
    arena.expect(not JobHistory.objects.exists(), "There is a history without a partition.")
    said = [worker for worker in arena.workers if "no partition for today" in worker.output]
    arena.expect(said, "No worker said what an owner must run.")
    with transaction.atomic(), connection.cursor() as cursor:
        add_partitions(cursor, [datetime.now(UTC).date()])
    arena.wait_until_work_goes_on()
    arena.rounds_done = 1


def drop_partitions() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'django_jobs_job_history'::regclass"
        )
        for (leaf,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE {leaf}")


def _limited_role(arena: Arena) -> str:
    """The url of a role that may use the tables and owns none, until the end."""
    _execute(
        f"CREATE ROLE {LIMITED} LOGIN",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {LIMITED}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {LIMITED}",
    )
    arena.afterwards.callback(_execute, f"DROP OWNED BY {LIMITED}", f"DROP ROLE {LIMITED}")
    return urlunsplit(urlsplit(arena.database.url)._replace(netloc=f"{LIMITED}@"))


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
