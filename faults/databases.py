"""The database that is attacked: a PostgreSQL of the kit's own, one of yours, or a SQLite file.

The own PostgreSQL keeps what it acknowledged when it is stopped like a crash. A server of yours (``DATABASE_URL``)
gets a database of its own, removed at the end; faults that stop the server or change it are not for it.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.postgres_server import PostgresServer

SETTINGS = {"synchronous_commit": "on"}
NAME = f"django_jobs_faults_{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """``server``: the one that may be stopped. ``admin_url``: another database beside it."""

    url: str
    admin_url: str = ""
    server: PostgresServer | None = None

    @property
    def vendor(self) -> str:
        return "postgresql" if self.admin_url else "sqlite"

    def administer(self, statement: str, **names: str) -> None:
        """Run one statement beside the database, each ``{name}`` an identifier."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            identifiers = {key: sql.Identifier(name) for key, name in names.items()}
            connection.execute(sql.SQL(statement).format(**identifiers))


@contextmanager
def provided(vendor: str) -> Iterator[Database]:
    with _sqlite() if vendor == "sqlite" else _postgresql() as database:
        yield database


@contextmanager
def _sqlite() -> Iterator[Database]:
    with tempfile.TemporaryDirectory(prefix="django-jobs-faults-", ignore_cleanup_errors=True) as folder:
        yield Database(url=f"sqlite://{Path(folder) / 'jobs.sqlite3'}")


@contextmanager
def _postgresql() -> Iterator[Database]:
    if given := os.environ.get("DATABASE_URL"):
        with _fresh(Database(url=_beside(given), admin_url=given)) as database:
            yield database
        return
    with (
        PostgresServer(**SETTINGS) as server,
        _fresh(Database(url=_beside(server.url()), admin_url=server.url(), server=server)) as database,
    ):
        yield database


@contextmanager
def _fresh(database: Database) -> Iterator[Database]:
    database.administer("CREATE DATABASE {name}", name=NAME)
    try:
        yield database
    finally:
        database.administer("DROP DATABASE {name} WITH (FORCE)", name=NAME)


def _beside(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{NAME}"))
