"""Django's connection to the jobs database, as services use it: for one turn, and nobody waits for them.

Each turn closes what it opened, so a process at rest holds no connection, and one that the server has dropped is not
met again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.engines import statements


@contextmanager
def connection_for_a_turn(alias: str) -> Iterator[BaseDatabaseWrapper]:
    """Closed at the end of the block."""
    connection = connections[alias]
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def brief_transaction(alias: str) -> Iterator[None]:
    """Whoever has locked what is needed here holds up this turn for two seconds, not the other services."""
    with transaction.atomic(using=alias):
        statements(alias).wait_briefly(connections[alias])
        yield
