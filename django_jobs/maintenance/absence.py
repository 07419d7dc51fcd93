"""Says in the log when nobody leads the maintenance. Runs where none is done: in workers with ``--no-scheduler``.

Who leads would open alerts; that nobody does, only a worker that does not take part can tell.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from django_jobs import clock
from django_jobs.engines.protocol import MAINTENANCE, Session
from django_jobs.logs import get_logger
from django_jobs.models import Leadership

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
            logger.error(
                "Nobody leads the maintenance: schedules do not fire, delayed jobs and retries do not start, the jobs "
                "of dead workers stay where they are. Run a worker without --no-scheduler, or runjobscheduler."
            )
        return 1

    def _is_led(self) -> bool:
        """A leader that was killed is followed well within the minute."""
        since = Now() - self.pause
        with connection_for_a_turn(self._alias):
            return Leadership.objects.using(self._alias).filter(name=MAINTENANCE, expires_at__gt=since).exists()
