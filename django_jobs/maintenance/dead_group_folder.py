"""Adds up what came to and went from the groups of dead jobs."""

from __future__ import annotations

from datetime import timedelta

from django.db import connections

from django_jobs import clock
from django_jobs.engines.protocol import Session
from django_jobs.operations.dead_group_counts import fold_changes, forget_old_groups

IDLE = timedelta(seconds=10)
BUSY = timedelta(milliseconds=1)  # the other services have their turns in between
FEW = 400  # fewer than any engine takes at once: it was the rest
FORGET_EVERY = timedelta(hours=1)


class DeadGroupFolder:
    name = "dead group folder"

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._forget_at = 0.0
        self.pause = IDLE

    def run_once(self, session: Session) -> int:
        folded = 0
        self.pause = IDLE
        try:
            folded = fold_changes()
            if folded > FEW:
                self.pause = BUSY
            elif clock.monotonic() >= self._forget_at:
                forget_old_groups()
                self._forget_at = clock.monotonic() + FORGET_EVERY.total_seconds()
        finally:
            if self.pause != BUSY:
                connections[self._alias].close()
        return folded

    def close(self, session: Session) -> None:
        """Nothing to do: another process goes on."""
