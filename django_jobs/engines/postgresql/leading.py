"""The leadership of maintenance, and the leader's look. In the transaction that is open."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import psycopg

from django_jobs.engines.protocol import MAINTENANCE, RENEW_BELOW, Look

from .queries import query

Connection = psycopg.Connection[Any]


def look(connection: Connection, worker: str, lease: timedelta, *, prepare: bool) -> Look:
    free_in = _lead(connection, worker, lease)
    if free_in is not None:
        return Look(leads=False, free_in=free_in)
    ((next_due, next_slot, lapsed, waiting),) = connection.execute(query("look"), prepare=prepare).fetchall()
    return Look(leads=True, next_due=next_due, next_slot=next_slot, lapsed=lapsed, waiting=frozenset(waiting))


def _lead(connection: Connection, worker: str, lease: timedelta) -> timedelta | None:
    """Take or renew the leadership. None: it is ours; else the time until it can be taken."""
    terms: Mapping[str, Any] = {"name": MAINTENANCE, "worker": worker, "lease": lease}
    rows: list[tuple[str, timedelta]] = connection.execute(query("read_leader"), terms).fetchall()
    holder, left = rows[0] if rows else ("", timedelta(0))
    if holder != worker and left > timedelta(0):
        return left
    if holder == worker and left >= lease * RENEW_BELOW:
        return None
    return None if connection.execute(query("lead"), terms).rowcount else lease


def resign(connection: Connection, worker: str) -> bool:
    return connection.execute(query("resign"), {"name": MAINTENANCE, "worker": worker}).rowcount > 0
