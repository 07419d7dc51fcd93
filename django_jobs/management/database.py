"""How commands ask the jobs database: what they make sure of first, and for how long they wait for an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from django_jobs.conf import get_settings
from django_jobs.engines import stand_alone, statements
from django_jobs.engines.config import EngineConfig

PATIENCE = timedelta(seconds=30)


@contextmanager
def bounded_connection() -> Iterator[None]:
    """For the time of the block, Django's connection to the jobs database raises OperationalError when an answer takes
    longer than PATIENCE. Inside of a transaction it stays as it is.
    """
    alias = get_settings().database
    usual = connections[alias]
    if not usual.in_atomic_block:
        stand_alone(EngineConfig(alias=alias), PATIENCE)
    try:
        yield
    finally:
        if connections[alias] is not usual:
            connections[alias].close()
            connections[alias] = usual


def refuse_unusable_database() -> None:
    """Raise CommandError unless the jobs database can be reached and is migrated."""
    alias = get_settings().database
    statements(alias)  # Refuses what no engine knows.
    try:
        with bounded_connection():
            executor = MigrationExecutor(connections[alias])
            plan = executor.migration_plan([n for n in executor.loader.graph.leaf_nodes() if n[0] == "django_jobs"])
    except DatabaseError as error:
        raise CommandError(f"The jobs database (alias {alias!r}) cannot be used: {str(error).strip()}") from error
    finally:
        connections[alias].close()
    if plan:
        database = "" if alias == "default" else f" --database {alias}"
        raise CommandError(
            f"{len(plan)} migrations of django_jobs are not applied to alias {alias!r}. "
            f"Run: manage.py migrate{database}"
        )
