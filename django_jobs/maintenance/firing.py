"""Fires schedules when they are due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.db import connections

from django_jobs.conf import get_settings
from django_jobs.engines.protocol import Session
from django_jobs.operations.firing import SetAside, fire_due, next_look

from .service import Service

SHORTEST = timedelta(milliseconds=2)
CONTENDED = timedelta(milliseconds=50)
LONGEST = timedelta(seconds=30)
AFTER_FAILURE = timedelta(seconds=1)
COVERED, UNCOVERED = timedelta(minutes=2), timedelta(seconds=3)
FOLLOW_AFTER_SECONDS = 1.0


class Firing(Service):
    """One query tells when the next schedule is due. A batch a turn, so that other services have theirs. The leader
    fires on time, and the lookout hastens it when an edit brought a slot forward. The others come a little later, in
    case there is no leader; and they look for edits themselves unless the leader can fire all they can: ``is_covered``.
    """

    name = "firing"

    def __init__(
        self,
        aside: SetAside,
        leads: Callable[[], bool] = lambda: True,
        is_covered: Callable[[], bool] = lambda: True,
    ) -> None:
        self._aside = aside
        self._leads = leads
        self._is_covered = is_covered
        self.pause = SHORTEST

    def run_once(self, session: Session) -> int:
        try:
            return self._fire_if_due()
        except Exception:
            self.pause = AFTER_FAILURE
            connections[get_settings().database].close()
            raise

    def _fire_if_due(self) -> int:
        seconds = next_look(self._aside)
        late = 0.0 if self._leads() else FOLLOW_AFTER_SECONDS
        longest = self._longest()
        wait = longest if seconds is None else timedelta(seconds=seconds + late)
        if wait > timedelta(0):
            self.pause = min(max(wait, SHORTEST), longest)
            return 0
        count = fire_due(self._aside)
        # Nothing, although something was due: another scheduler has it locked.
        self.pause = SHORTEST if count else CONTENDED
        return count

    def _longest(self) -> timedelta:
        if self._leads():
            return LONGEST
        return COVERED if self._is_covered() else UNCOVERED
