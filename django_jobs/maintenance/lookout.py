"""Leads the maintenance, or waits until it can: one process looks for all of them what there is to do.

The leader asks one question each ``every`` (what is due, did a lease run out, are jobs waiting beside sleepers, is
anything to be done for dead jobs) and gives the services that do it their turn. The others ask when the leader's lease
ends. So an idle process costs the database next to nothing, and a dead leader is followed within LEASE and its jitter.
Nothing is wrong with two leaders, or with none for a while: the leadership only saves work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from random import uniform

from django_jobs import clock
from django_jobs.engines.protocol import LONGEST_TERM, EngineUnavailable, Session
from django_jobs.engines.values import Look
from django_jobs.logs import get_logger

from .service import Service
from .stager import SHORTEST

logger = get_logger("django_jobs.maintenance")

SHORTEST_LEASE = timedelta(seconds=1)
LONGEST_JITTER = 0.5

Hasten = Callable[[str, float], None]


class Lookout(Service):
    """``hasten`` gives a service of this process a turn. ``leads`` and ``is_covered`` may be asked from any thread.
    ``in_outage``: the database did not answer the last look.
    """

    name = "lookout"

    def __init__(self, every: timedelta, job_lease: timedelta, queues: Iterable[str], hasten: Hasten) -> None:
        self._every = every
        # Well below the jobs' lease: when a dead leader's jobs lapse, the new one has had contact for long enough.
        self._lease = min(max(job_lease / 5, SHORTEST_LEASE), LONGEST_TERM)
        self._queues = tuple(queues)
        self._hasten = hasten
        self._leads_until = 0.0
        self._covered = False
        self.in_outage = False
        self.pause = every

    def leads(self) -> bool:
        return clock.monotonic() < self._leads_until

    def is_covered(self) -> bool:
        """Another process leads, and can fire whatever this one can."""
        return self._covered

    def run_once(self, session: Session) -> int:
        self.pause = self._every
        asked_at = clock.monotonic()
        look = self._look(session)
        self._note(look, asked_at)
        if not look.leads:
            self.pause = look.free_in + self._lease * uniform(0, LONGEST_JITTER)
            if not look.same_build:
                self._hasten("firing", 0.0)
            return 0
        self.pause = self._until_next(look)
        for name in _turns(look):
            self._hasten(name, 0.0)
        for queue in sorted(look.waiting):
            session.wake(queue)
        return 1

    def _look(self, session: Session) -> Look:
        try:
            look = session.look(self._lease)
        except EngineUnavailable:
            self.in_outage = True
            raise
        self.in_outage = False
        return look

    def _note(self, look: Look, asked_at: float) -> None:
        led = self._leads_until > 0.0
        if look.leads != led:
            logger.info("This process leads the maintenance." if look.leads else "Another process leads by now.")
        self._covered = not look.leads and look.same_build
        self._leads_until = asked_at + self._lease.total_seconds() if look.leads else 0.0

    def _until_next(self, look: Look) -> timedelta:
        ahead = [wait for wait in (look.next_due, look.next_slot) if wait is not None and wait > timedelta(0)]
        return max(min([*ahead, self._every]), SHORTEST)

    def close(self, session: Session) -> None:
        """Resign, and wake a sleeper of each queue: it will see that nobody leads."""
        if self.leads() and session.resign():
            for queue in self._queues:
                session.wake(queue)


def _turns(look: Look) -> Iterable[str]:
    if look.next_due is not None and look.next_due <= timedelta(0):
        yield "stager"
    if look.next_slot is not None and look.next_slot <= timedelta(0):
        yield "firing"
    if look.lapsed:
        yield "rescuer"
    if look.bulk:
        yield "bulk runner"
    if look.dead_changes:
        yield "dead group folder"
