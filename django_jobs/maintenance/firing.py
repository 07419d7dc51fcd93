"""Fires schedules when they are due."""

from __future__ import annotations

from datetime import timedelta

from django.db import connections

from django_jobs.conf import get_settings
from django_jobs.engines.protocol import Session
from django_jobs.operations.firing import SetAside, fire_due, next_look

SHORTEST = timedelta(milliseconds=2)
CONTENDED = timedelta(milliseconds=50)
LONGEST = timedelta(seconds=5)


class Firing:
    """One query tells when the next schedule is due; edits are seen within LONGEST. A batch a turn, so that other
    services have theirs. ``poke`` of the stager and the wake-up of the queues tell of the jobs.
    """

    name = "scheduler"

    def __init__(self, aside: SetAside) -> None:
        self._aside = aside
        self.pause = SHORTEST

    def run_once(self, session: Session) -> int:
        try:
            return self._fire_if_due()
        except Exception:
            self.pause = LONGEST / 5
            connections[get_settings().database].close()
            raise

    def _fire_if_due(self) -> int:
        seconds = next_look(self._aside)
        if seconds is None or seconds > 0:
            self.pause = LONGEST if seconds is None else min(max(timedelta(seconds=seconds), SHORTEST), LONGEST)
            return 0
        count = fire_due(self._aside)
        # Nothing, although something was due: another scheduler has it locked.
        self.pause = SHORTEST if count else CONTENDED
        return count

    def close(self, session: Session) -> None:
        """Nothing to do: others fire."""
