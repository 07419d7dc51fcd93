"""Makes the history's day partitions seven days ahead. Dropping old ones belongs to retention."""

from __future__ import annotations

from datetime import timedelta

from django.db import connections

from django_jobs.engines import statements
from django_jobs.engines.protocol import Session

DAYS_AHEAD = 7


class Partitioner:
    name = "partitioner"
    pause = timedelta(hours=1)

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def run_once(self, session: Session) -> int:
        connection = connections[self._alias]
        try:
            today = statements(self._alias).server_time(connection).date()
            return statements(self._alias).add_partitions(
                connection, [today + timedelta(days=n) for n in range(-1, DAYS_AHEAD + 1)]
            )
        finally:
            connection.close()

    def close(self, session: Session) -> None:
        """Nothing to do."""
