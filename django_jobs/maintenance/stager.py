"""Moves scheduled jobs that are due to pending, at most a thousand of each queue and priority in a pass."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django_jobs.engines.protocol import Session

SHORTEST = timedelta(milliseconds=2)


class Stager:
    """``poke`` tells this process's own loop; a sleeper elsewhere is woken for each queue that received jobs."""

    name = "stager"

    def __init__(self, every: timedelta, poke: Callable[[], None]) -> None:
        self._every = every
        self._poke = poke
        self.pause = every

    def run_once(self, session: Session) -> int:
        staging = session.stage()
        if staging.staged:
            for queue in sorted(staging.queues):
                session.wake(queue)
            self._poke()
        next_due = self._every if staging.next_due is None else staging.next_due
        self.pause = max(min(next_due, self._every), SHORTEST)
        return staging.staged

    def close(self, session: Session) -> None:
        """Nothing to do: due jobs are staged by others."""
