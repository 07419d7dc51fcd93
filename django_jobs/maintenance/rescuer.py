"""Gives jobs whose lease ran out another attempt, or buries them. It runs when it is hastened: a lease ran out."""

from __future__ import annotations

from datetime import timedelta

from django_jobs.engines.protocol import MAX_RESCUED, Judge, Session
from django_jobs.logs import get_logger

logger = get_logger("django_jobs.maintenance")


class Rescuer:
    """``judge`` decides what becomes of a lost run."""

    name = "rescuer"

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.pause: timedelta | None = None

    def run_once(self, session: Session) -> int:
        self.pause = None
        outcomes = session.rescue(self._judge)
        for outcome in outcomes:
            logger.warning("Job %s was rescued: its worker did not renew the lease.", outcome.job_id)
        if len(outcomes) == MAX_RESCUED:
            self.pause = timedelta(0)
        return len(outcomes)

    def close(self, session: Session) -> None:
        """Nothing to do: expired leases are found by others."""
