"""Makes the table of schedules follow the code: at the start and every minute, see operations/declared_schedules.py."""

from __future__ import annotations

from datetime import timedelta

from django_jobs import clock
from django_jobs.engines.protocol import Session
from django_jobs.logs import get_logger
from django_jobs.operations.declared_schedules import sync_schedules

from .service import Service

logger = get_logger("django_jobs.maintenance")


class Declarer(Service):
    """Forgets what nobody declares only if its own last turn was a short while ago: after an outage of the database the
    others get the time to say their words again.
    """

    name = "declarer"
    pause = timedelta(minutes=1)

    def __init__(self) -> None:
        self._last_turn: float | None = None

    def run_once(self, session: Session) -> int:
        now = clock.monotonic()
        forget = self._last_turn is not None and now - self._last_turn < 3 * self.pause.total_seconds()
        changes = [synced for synced in sync_schedules(forget=forget) if synced.action != "unchanged"]
        for synced in changes:
            level = logger.error if synced.action == "wrong" else logger.info
            level("Schedule %r as declared in code: %s %s", synced.name, synced.action, synced.detail)
        self._last_turn = now
        return len(changes)
