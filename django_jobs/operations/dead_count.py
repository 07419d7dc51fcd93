"""How many dead jobs a filter means: exactly, or not at all if that takes too long for a page."""

from __future__ import annotations

from datetime import timedelta

from django.db import DatabaseError, connections, transaction

from django_jobs.conf import get_settings
from django_jobs.engines import statements

from .dead_filter import DeadFilter
from .dead_groups import dead_count

PATIENCE = timedelta(milliseconds=1500)


def count_dead(filter: DeadFilter) -> int | None:
    """None after a second and a half of counting."""
    if filter == DeadFilter(type=filter.type, fingerprint=filter.fingerprint):
        return dead_count(type=filter.type, fingerprint=filter.fingerprint)
    alias = get_settings().database
    engine = statements(alias)
    try:
        # In a block that is rolled back, so that the limit ends with it, also in a caller's transaction.
        with transaction.atomic(using=alias):
            engine.stop_after(connections[alias], PATIENCE)
            count = filter.dead_jobs().count()
            transaction.set_rollback(True, using=alias)
            return count
    except DatabaseError as error:
        if engine.was_stopped(error):
            return None
        raise
