"""Says in the log when nobody leads the maintenance. Runs where none is done: in workers with ``--no-scheduler``.

Who leads would open alerts; that nobody does, only a worker that does not take part can tell.
"""

from __future__ import annotations

from datetime import timedelta

from django_jobs import clock
from django_jobs.engines.protocol import Session
from django_jobs.logs import get_logger
from django_jobs.operations.leadership import NOBODY_LEADS, leader

from .database import connection_for_a_turn
from .service import Service

logger = get_logger("django_jobs.maintenance")

SAY_AGAIN_SECONDS = 600.0


class Absence(Service):
    """Said once it is seen in two turns, so that all may start together; again every ten minutes, and when it ends."""

    name = "absence"
    pause = timedelta(minutes=1)

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._seen = 0
        self._say_at = 0.0

    def run_once(self, session: Session) -> int:
        if self._is_led():
            if self._say_at:
                logger.info("A worker or scheduler leads the maintenance again.")
            self._seen, self._say_at = 0, 0.0
            return 0
        self._seen += 1
        if self._seen > 1 and clock.monotonic() >= self._say_at:
            self._say_at = clock.monotonic() + SAY_AGAIN_SECONDS
            logger.error(NOBODY_LEADS)
        return 1

    def _is_led(self) -> bool:
        with connection_for_a_turn(self._alias):
            return leader() is not None
