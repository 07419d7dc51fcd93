"""Gives jobs whose lease ran out another attempt, or buries them. Each lost run is counted, as ``lost``.

It runs when it is hastened: a lease ran out.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django_jobs.engines.protocol import MAX_RESCUED, Judge, Session
from django_jobs.engines.values import ExpiredLease
from django_jobs.logs import get_logger
from django_jobs.outcomes import Outcome

from .service import Service

logger = get_logger("django_jobs.maintenance")


class Rescuer(Service):
    """``judge`` decides what becomes of a lost run; ``count`` takes the queue and type of each."""

    name = "rescuer"

    def __init__(self, judge: Judge, count: Callable[[str, str], None]) -> None:
        self._judge = judge
        self._count = count
        self.pause: timedelta | None = None

    def run_once(self, session: Session) -> int:
        self.pause = None
        leases: dict[UUID, ExpiredLease] = {}

        def judge(lease: ExpiredLease) -> Outcome:
            leases[lease.job_id] = lease
            return self._judge(lease)

        outcomes = session.rescue(judge)
        for outcome in outcomes:
            self._note(leases[outcome.job_id])
        if len(outcomes) == MAX_RESCUED:
            self.pause = timedelta(0)
        return len(outcomes)

    def _note(self, lease: ExpiredLease) -> None:
        self._count(lease.queue, lease.type)
        logger.warning(
            "Job %s (%s): attempt %d of %d is lost, because worker %s did not renew its lease.",
            lease.job_id,
            lease.type,
            lease.attempt,
            lease.max_attempts,
            lease.worker,
        )
