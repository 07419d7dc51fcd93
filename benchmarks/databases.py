"""The databases of a benchmark run: made, migrated, and gone at its end.

PostgreSQL is the server of ``DATABASE_URL``, or one of its own with stock settings and everything that makes a
commit durable. The data lie below the folder for temporary files: set ``TMPDIR`` if that is no real disk.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import django
import psycopg
from django.core.management import call_command
from django.db import connections
from psycopg import sql

from tests.postgres_server import PostgresServer

DURABLE = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "100",
    "shared_buffers": "128MB",
}
ALIASES = ("default", "small", "sqlite")


@dataclass(frozen=True, slots=True)
class Databases:
    """``server`` is None where the server was there before. ``admin_url`` leads to another database of it."""

    admin_url: str
    name: str
    server: PostgresServer | None


@contextmanager
def provided() -> Iterator[Databases]:
    """Databases to measure on; Django is set up."""
    with ExitStack() as stack:
        server = None if os.environ.get("DATABASE_URL") else stack.enter_context(PostgresServer(**DURABLE))
        admin_url = server.url() if server else os.environ["DATABASE_URL"]
        name = f"django_jobs_benchmark_{os.getpid()}"
        for variable, database in (("BENCHMARK_POSTGRESQL", name), ("BENCHMARK_POSTGRESQL_SMALL", f"{name}_small")):
            os.environ[variable] = stack.enter_context(_database(admin_url, database))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="django-jobs-benchmark-"))
        os.environ["BENCHMARK_SQLITE"] = str(Path(folder) / "jobs.sqlite3")
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
        django.setup()
        stack.callback(connections.close_all)
        for alias in ALIASES:
            call_command("migrate", database=alias, verbosity=0)
        yield Databases(admin_url, name, server)


@contextmanager
def _database(admin_url: str, name: str) -> Iterator[str]:
    _administer(admin_url, "CREATE DATABASE {}", name)
    try:
        yield urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
    finally:
        _administer(admin_url, "DROP DATABASE {} WITH (FORCE)", name)


def _administer(admin_url: str, statement: str, name: str) -> None:
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))
