"""Getting the jobs' tables into a known state."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections
from django.test.utils import override_settings

from django_jobs.handle import JobHandle
from django_jobs.models import Job, JobHistory

TWIN = "benchmark_twin"


@contextmanager
def jobs_in(alias: str) -> Iterator[None]:
    """This process enqueues to ``alias``."""
    with override_settings(DJANGO_JOBS=settings.DJANGO_JOBS | {"DATABASE": alias}):
        yield


def execute(statement: str, alias: str = "default") -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)


def empty(alias: str = "default", *further: str) -> None:
    tables = [Job._meta.db_table, JobHistory._meta.db_table, *further]
    if connections[alias].vendor == "postgresql":
        execute(f"TRUNCATE {', '.join(tables)}", alias)
    else:
        for table in tables:
            execute(f"DELETE FROM {table}", alias)


def fill(handle: JobHandle, count: int, alias: str = "default") -> None:
    """Exactly ``count`` jobs and no history, the table as vacuum leaves it."""
    empty(alias)
    with jobs_in(alias):
        handle.enqueue_many({"number": number} for number in range(count))
    come_to_rest(alias)


def come_to_rest(alias: str = "default") -> None:
    if connections[alias].vendor == "postgresql":
        execute(f"VACUUM ANALYZE {Job._meta.db_table}", alias)
        execute("CHECKPOINT", alias)


def make_twin() -> None:
    """A table like that of the jobs in columns, defaults, indexes and storage."""
    jobs = Job._meta.db_table
    with connections["default"].cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {TWIN}")
        cursor.execute(f"CREATE TABLE {TWIN} (LIKE {jobs} INCLUDING ALL)")
        cursor.execute("SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = %s::regclass", [jobs])
        if storage := cursor.fetchone()[0]:
            cursor.execute(f"ALTER TABLE {TWIN} SET ({storage})")
