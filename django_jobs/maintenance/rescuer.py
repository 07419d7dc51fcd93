"""Gives jobs whose lease ran out another attempt, or buries them."""

from __future__ import annotations

from datetime import timedelta

from django_jobs.engines.protocol import Judge, Session
from django_jobs.logs import get_logger

logger = get_logger("django_jobs.maintenance")


class Rescuer:
    """``judge`` decides what becomes of a lost run."""

    name = "rescuer"

    def __init__(self, every: timedelta, judge: Judge) -> None:
        self.pause = every
        self._judge = judge

    def run_once(self, session: Session) -> int:
        outcomes = session.rescue(self._judge)
        for outcome in outcomes:
            logger.warning("Job %s was rescued: its worker did not renew the lease.", outcome.job_id)
        return len(outcomes)

    def close(self, session: Session) -> None:
        """Nothing to do: expired leases are found by others."""
