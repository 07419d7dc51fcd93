"""Retention: removes what is too old, a small batch of each table a turn, so that nobody notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import OperationalError, connections

from django_jobs.conf import Settings
from django_jobs.engines import statements
from django_jobs.engines.protocol import Session
from django_jobs.logs import get_logger

from . import pruning
from .database import brief_transaction, connection_for_a_turn
from .rollup import LEVELS, roll_up
from .service import Service

logger = get_logger("django_jobs.maintenance")

# After midnight some finish with the id of a moment before it.
CLOSING = timedelta(hours=1)

Task = Callable[[], int]


class Pruner(Service):
    """A task that fails does not stop the others. Comes again soon while there is more, else every ten minutes."""

    name = "pruner"
    between_batches = timedelta(seconds=1)
    rest = timedelta(minutes=10)

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._alias = settings.database
        self.pause = self.rest

    def run_once(self, session: Session) -> int:
        self.pause = self.rest
        with connection_for_a_turn(self._alias) as connection:
            now = statements(self._alias).server_time(connection)
            done = [self._try(name, task) for name, task in self._tasks(now)]
        if any(done):
            self.pause = self.between_batches
        return sum(done)

    def _try(self, name: str, task: Task) -> int:
        try:
            return task()
        except OperationalError as error:
            logger.info("Retention of %s will be tried again later: %s", name, str(error).strip())
        except Exception:
            logger.exception("Retention of %s failed, and will be tried again.", name)
        connections[self._alias].close()
        return 0

    def _tasks(self, now: datetime) -> Iterator[tuple[str, Task]]:
        yield from self._history(now)
        settings = self._settings
        for name, always in (
            ("idempotency keys", pruning.idempotency_keys),
            ("effects", pruning.effects),
            ("workers", pruning.workers),
            ("dead groups", pruning.dead_groups),
            ("hours of dead groups", pruning.dead_group_hours),
        ):
            yield name, partial(self._briefly, always, now)
        for level in LEVELS:
            yield "counts", partial(self._briefly, roll_up, now, level)
        for name, remove, kept in (
            ("dead jobs", pruning.dead_jobs, settings.dead_retention),
            ("counts", pruning.counts, settings.count_retention),
            ("slots", pruning.slots, settings.slot_retention),
            ("alerts", pruning.alerts, settings.alert_retention),
            ("audit entries", pruning.audit_entries, settings.audit_retention),
            ("bulk operations", pruning.bulk_operations, settings.audit_retention),
        ):
            if kept is not None:
                yield name, partial(self._briefly, remove, now - kept)

    def _briefly(self, remove: Callable[..., int], *terms: Any) -> int:
        with brief_transaction(self._alias):
            return remove(self._alias, *terms)

    def _history(self, now: datetime) -> Iterator[tuple[str, Task]]:
        engine, connection = statements(self._alias), connections[self._alias]
        kept = self._settings.history_retention
        if kept is not None:
            yield "history", lambda: engine.prune_history(connection, (now - kept).date(), pruning.BATCH)
        yield "history", lambda: engine.freeze_history(connection, (now - CLOSING).date())
