"""Makes the history's day partitions seven days ahead. Dropping old ones belongs to retention."""

from __future__ import annotations

from datetime import timedelta

from django_jobs.engines import statements
from django_jobs.engines.protocol import Session

from .database import connection_for_a_turn
from .service import Service

DAYS_AHEAD = 7


class Partitioner(Service):
    name = "partitioner"
    pause = timedelta(hours=1)

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def run_once(self, session: Session) -> int:
        with connection_for_a_turn(self._alias) as connection:
            today = statements(self._alias).server_time(connection).date()
            days = [today + timedelta(days=n) for n in range(-1, DAYS_AHEAD + 1)]
            return statements(self._alias).add_partitions(connection, days)
