"""Frees the leases of a process that is known to be dead, at once and with the cause on record.

The supervisor saw it die; an operator says so by ``freejobs``. Runs that had started count as lost, in the counts of
whoever frees; a job that only waited in the process is handed back, its attempt refunded, where the supervisor knows
that.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.db import connections
from django.db.models.functions import Now

from django_jobs import clock
from django_jobs.engines import open_session, stand_alone
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import MAX_RESCUED, Judge, Session
from django_jobs.engines.values import ExpiredLease
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.maintenance.reporter import write_counts
from django_jobs.models import Worker
from django_jobs.outcomes import Outcome, Rescheduled

from .endings import lost

logger = get_logger("django_jobs.supervisor")

# The server may still be busy with what the process sent last: look again.
PASSES = (1.0, 4.0)
RETRY_SECONDS = 2.0


def judge_of_dead(cause: str, started: frozenset[int] | None) -> Judge:
    """``started``: the tokens of the runs that had begun. None: nobody knows, so all of them count as begun."""

    def judge(lease: ExpiredLease) -> Outcome:
        if started is not None and lease.token not in started:
            return Rescheduled(job_id=lease.job_id, token=lease.token, delay=timedelta(0), why="handed_back")
        return lost(lease, cause)

    return judge


def free_leases(session: Session, worker: str, judge: Judge, counts: Counts) -> Sequence[Outcome]:
    """All of them, in as many calls as it takes; ``counts`` has the lost ones. Raises EngineUnavailable."""
    leases: dict[UUID, ExpiredLease] = {}

    def noting_judge(lease: ExpiredLease) -> Outcome:
        leases[lease.job_id] = lease
        return judge(lease)

    outcomes: list[Outcome] = []
    while some := session.free(worker, noting_judge):
        outcomes += some
        for lease in [leases[outcome.job_id] for outcome in some if not _is_refunded(outcome)]:
            counts.add_lost(lease.queue, lease.type)
        if len(some) < MAX_RESCUED:
            break
    return outcomes


def _is_refunded(outcome: Outcome) -> bool:
    return isinstance(outcome, Rescheduled) and outcome.refund


def report_counts(counts: Counts, config: EngineConfig) -> None:
    """As rows of ``config.worker``."""
    unwritten = counts.unwritten()
    write_counts(config.alias, config.worker, unwritten)
    counts.note_written(unwritten)


@dataclass(slots=True, kw_only=True)
class Dead:
    """A process to clear up after. ``passes`` are the pauses before further looks."""

    worker: str
    cause: str
    started: frozenset[int] | None
    since: float = field(default_factory=clock.monotonic)
    due: float = 0.0
    passes: deque[float] = field(default_factory=lambda: deque(PASSES))


class Freer:
    """Clears up in a thread of its own, so that a database that does not answer holds up nobody. ``config.worker``: a
    name that is new at each start, for the counts.
    """

    def __init__(self, config: EngineConfig, give_up: timedelta) -> None:
        self._config = config
        self._give_up = give_up.total_seconds()
        self._counts = Counts()
        self._dead: list[Dead] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="django_jobs freer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def free(self, worker: str, cause: str, started: frozenset[int] | None) -> None:
        with self._changed:
            self._dead.append(Dead(worker=worker, cause=cause, started=started))
            self._changed.notify()

    def close(self, timeout: float) -> None:
        """Finish the first pass over each; what is left is found by its lease."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout)

    def _serve(self) -> None:
        stand_alone(self._config, self._config.patience)
        while (dead := self._next()) is not None:
            self._clear_up(dead)

    def _next(self) -> Dead | None:
        with self._changed:
            while True:
                first = min(self._dead, key=lambda dead: dead.due, default=None)
                if first is not None and (first.due <= clock.monotonic() or self._closing):
                    self._dead.remove(first)
                    return first
                if self._closing:
                    return None
                self._changed.wait(None if first is None else first.due - clock.monotonic())

    def _clear_up(self, dead: Dead) -> None:
        session = open_session(self._config)
        try:
            judge = judge_of_dead(dead.cause, dead.started)
            _tell_freed(dead, free_leases(session, dead.worker, judge, self._counts))
            report_counts(self._counts, self._config)
            self._note_end(dead.worker)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next death is to be dealt with
            self._put_off(dead, error)
            return
        finally:
            session.close()
            connections.close_all()
        if dead.passes and not self._closing:
            self._again(dead, dead.passes.popleft())

    def _put_off(self, dead: Dead, error: Exception) -> None:
        logger.warning("The jobs of %s could not be freed, and will be rescued if that goes on: %r", dead.worker, error)
        if not self._closing and clock.monotonic() - dead.since < self._give_up:
            self._again(dead, RETRY_SECONDS)

    def _again(self, dead: Dead, pause: float) -> None:
        dead.due = clock.monotonic() + pause
        with self._changed:
            self._dead.append(dead)

    def _note_end(self, worker: str) -> None:
        Worker.objects.using(self._config.alias).filter(pk=worker, stopped_at=None).update(stopped_at=Now())


def _tell_freed(dead: Dead, outcomes: Sequence[Outcome]) -> None:
    if outcomes:
        logger.warning(
            "%s (%s): %d jobs are free again, %d of them had not started.",
            dead.cause,
            dead.worker,
            len(outcomes),
            sum(map(_is_refunded, outcomes)),
        )
