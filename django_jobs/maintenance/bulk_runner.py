"""Moves the jobs of bulk operations, a batch of each in a turn.

At rest it asks for nothing: the lookout hastens it within its two seconds when there is one to carry out.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import connections

from django_jobs.engines.protocol import Session
from django_jobs.logs import get_logger
from django_jobs.operations.bulk_step import bulk_step, running_bulks

from .service import BUSY, Service

logger = get_logger("django_jobs.maintenance")

SPREADING = timedelta(milliseconds=500)


class BulkRunner(Service):
    name = "bulk runner"

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self.pause: timedelta | None = None

    def run_once(self, session: Session) -> int:
        self.pause = None
        try:
            running = running_bulks()
            more = [_step(operation) for operation in running]
            if running:
                self.pause = BUSY if any(more) else SPREADING
        finally:
            if self.pause != BUSY:
                connections[self._alias].close()
        return len(more)


def _step(operation: UUID) -> bool:
    """One that fails does not stop the others; its row says why, and it is tried again."""
    try:
        return bulk_step(operation)
    except Exception:
        logger.exception("A batch of bulk operation %s failed, and will be tried again.", operation)
        return False
