"""Keeps the groups of dead jobs. Called by maintenance; safe in any number of processes."""

from __future__ import annotations

from django_jobs.conf import get_settings
from django_jobs.engines import statements

from .transactions import jobs_connection

BATCH = 5000


def fold_changes() -> int:
    """Add changes up into their groups, in one transaction; returns how many. There may be more unless it is 0."""
    connection = jobs_connection()
    return statements(connection.alias).fold_dead_groups(connection, BATCH, get_settings().release)
