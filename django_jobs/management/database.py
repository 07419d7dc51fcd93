"""What a command that goes on for long makes sure of first."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from django_jobs.conf import get_settings
from django_jobs.engines import statements


def refuse_unusable_database() -> None:
    """Raise CommandError unless the jobs database can be reached and is migrated."""
    alias = get_settings().database
    statements(alias)  # Refuses what no engine knows.
    try:
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
