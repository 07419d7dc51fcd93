"""Outcomes that cannot be written because somebody else holds a lock on the job's row: an admin page, a psql
session.

They are tried again at each tick and their leases are renewed. After half a lease the log names the session
that is in the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable, Session
from django_jobs.logs import get_logger
from django_jobs.outcomes import Outcome

logger = get_logger("django_jobs.worker")


class BusyRows:
    """``persist``: some row was busy at the tick before as well, so it is no claimer that just looked at it."""

    def __init__(self, session: Session, lease: timedelta) -> None:
        self._session = session
        self._patience = lease.total_seconds() / 2
        self._since: dict[UUID, float] = {}
        self._named: set[UUID] = set()
        self.persist = False

    def note(self, busy: Sequence[Outcome]) -> None:
        """Called with what was busy at each tick."""
        if not busy and not self._since:
            return
        now = clock.monotonic()
        self.persist = any(outcome.job_id in self._since for outcome in busy)
        self._since = {outcome.job_id: self._since.get(outcome.job_id, now) for outcome in busy}
        self._named &= self._since.keys()
        for job_id, since in self._since.items():
            if now - since > self._patience and job_id not in self._named:
                self._named.add(job_id)
                self._name_blocker(job_id, now - since)

    def _name_blocker(self, job_id: UUID, seconds: float) -> None:
        blocker = "another session"
        with suppress(EngineUnavailable):
            blocker = self._session.blocker(job_id) or blocker
        logger.warning(
            "The outcome of job %s has been waiting for %.0f s: its row is locked by %s.", job_id, seconds, blocker
        )
