"""Marks schedules that cannot fire as broken, and heals them: see operations/mending.py.

The leader does both. A follower that may know what the leader does not heals.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django_jobs.engines.protocol import Session
from django_jobs.operations.firing import SetAside
from django_jobs.operations.mending import mend

from .service import Service


class Mender(Service):
    name = "mender"
    pause = timedelta(seconds=30)

    def __init__(
        self,
        aside: SetAside,
        leads: Callable[[], bool] = lambda: True,
        is_covered: Callable[[], bool] = lambda: True,
    ) -> None:
        self._aside = aside
        self._leads = leads
        self._is_covered = is_covered

    def run_once(self, session: Session) -> int:
        if self._leads():
            return mend(self._aside)
        return 0 if self._is_covered() else mend(self._aside, only_heal=True)
