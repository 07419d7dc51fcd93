"""Moves scheduled jobs that are due to pending, at most a thousand of each queue and priority in a pass.

It runs when it is hastened: in the leader when a job is due, in any process when a job is due that this process has
just put back.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django_jobs.engines.protocol import Session

from .service import Service

SHORTEST = timedelta(milliseconds=2)


class Stager(Service):
    """``poke`` tells this process's own loop; a sleeper elsewhere is woken for each queue that received jobs.

    Comes again by itself while the next job is due within ``every``.
    """

    name = "stager"

    def __init__(self, every: timedelta, poke: Callable[[], None]) -> None:
        self._every = every
        self._poke = poke
        self.pause: timedelta | None = None

    def run_once(self, session: Session) -> int:
        self.pause = None
        staging = session.stage()
        if staging.staged:
            for queue in sorted(staging.queues):
                session.wake(queue)
            self._poke()
        if staging.next_due is not None and staging.next_due < self._every:
            self.pause = max(staging.next_due, SHORTEST)
        return staging.staged
