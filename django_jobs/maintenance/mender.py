"""Marks schedules that cannot fire as broken, and heals them: see operations/mending.py."""

from __future__ import annotations

from datetime import timedelta

from django_jobs.engines.protocol import Session
from django_jobs.operations.firing import SetAside
from django_jobs.operations.mending import mend


class Mender:
    name = "mender"
    pause = timedelta(seconds=30)

    def __init__(self, aside: SetAside) -> None:
        self._aside = aside

    def run_once(self, session: Session) -> int:
        return mend(self._aside)

    def close(self, session: Session) -> None:
        """Nothing to do."""
