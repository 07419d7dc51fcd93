"""The leadership of maintenance, and the leader's look. In the transaction that is open."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import LONGEST_TERM, MAINTENANCE, RENEW_BELOW
from django_jobs.engines.values import Look

from .connected import Connection
from .queries import query


def look(connection: Connection, config: EngineConfig, lease: timedelta, *, prepare: bool) -> Look:
    if followed := _lead(connection, config, lease):
        return followed
    ((next_due, next_slot, lapsed, waiting, bulk, dead_changes),) = connection.execute(
        query("look"), prepare=prepare
    ).fetchall()
    return Look(
        leads=True,
        next_due=next_due,
        next_slot=next_slot,
        lapsed=lapsed,
        waiting=frozenset(waiting),
        bulk=bulk,
        dead_changes=dead_changes,
    )


def _lead(connection: Connection, config: EngineConfig, lease: timedelta) -> Look | None:
    """Take or renew the leadership. None: it is ours; else the look of a follower."""
    worker, longest = config.worker, max(lease, LONGEST_TERM)
    terms: Mapping[str, Any] = {
        "name": MAINTENANCE,
        "worker": worker,
        "build": config.build,
        "lease": lease,
        "longest": longest,
    }
    rows: list[tuple[str, str, timedelta]] = connection.execute(query("read_leader"), terms).fetchall()
    holder, build, left = rows[0] if rows else ("", "", timedelta(0))
    if holder != worker and timedelta(0) < left <= longest:
        return Look(leads=False, free_in=left, same_build=build == config.build)
    if holder == worker and lease * RENEW_BELOW <= left <= lease:
        return None
    if connection.execute(query("lead"), terms).rowcount:
        return None
    return Look(leads=False, free_in=lease, same_build=False)  # another was faster, of an unknown build


def resign(connection: Connection, worker: str) -> bool:
    return connection.execute(query("resign"), {"name": MAINTENANCE, "worker": worker}).rowcount > 0
