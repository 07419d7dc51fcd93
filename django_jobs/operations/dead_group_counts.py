"""Keeps the groups of dead jobs. Called by maintenance; safe in any number of processes."""

from __future__ import annotations

from datetime import timedelta

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.engines import statements
from django_jobs.models import DeadGroup, DeadGroupHour

from .transactions import jobs_connection

BATCH = 5000
HOURS_KEPT = timedelta(days=8)
EMPTY_GROUPS_KEPT = timedelta(days=180)


def fold_changes() -> int:
    """Add changes up into their groups, in one transaction; returns how many. There may be more unless it is 0."""
    connection = jobs_connection()
    return statements(connection.alias).fold_dead_groups(connection, BATCH, get_settings().release)


def forget_old_groups() -> int:
    """Delete hours that no chart shows, and groups that have been empty for half a year; returns how many."""
    alias, now = get_settings().database, clock.now()
    hours = DeadGroupHour.objects.using(alias).filter(hour__lt=now - HOURS_KEPT)
    groups = DeadGroup.objects.using(alias).filter(count=0, last_seen__lt=now - EMPTY_GROUPS_KEPT)
    return sum(stale.delete()[0] for stale in (hours, groups))
