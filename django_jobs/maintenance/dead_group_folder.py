"""Adds up what came to and went from the groups of dead jobs. The lookout hastens it when something did."""

from __future__ import annotations

from datetime import timedelta

from django.db import connections

from django_jobs.engines.protocol import Session
from django_jobs.operations.dead_group_counts import fold_changes

from .service import BUSY, Service

FEW = 400  # fewer than any engine takes at once: it was the rest


class DeadGroupFolder(Service):
    name = "dead group folder"

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self.pause: timedelta | None = None

    def run_once(self, session: Session) -> int:
        self.pause = None
        try:
            folded = fold_changes()
            self.pause = BUSY if folded > FEW else None
        finally:
            if self.pause is None:
                connections[self._alias].close()
        return folded
