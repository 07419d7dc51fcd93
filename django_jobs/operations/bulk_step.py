"""One batch of a bulk operation: a transaction that moves dead jobs and the operation's cursor together.

Dead jobs are looked at in the order of their deaths, BATCH at a time, whether they are meant or not: so a batch is
short whatever the filter, and a batch that is cut off by a crash is simply done again. The operation's row is locked
meanwhile, so of any number of processes one does the next batch and the others pass on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import floor
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, Case, Q, QuerySet, Value, When
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.failure import Failure
from django_jobs.logs import get_logger
from django_jobs.models import BulkKind, BulkOperation, BulkState, DeadJob
from django_jobs.storable import clean_text

from .audit import Actor, audit
from .dead_filter import DeadFilter
from .dead_letters import discard_batch, requeue_batch

BATCH = 500
LONGEST_ERROR = 1000
FIRST_SHARE = timedelta(seconds=1)  # so that something happens at once

logger = get_logger("django_jobs")


class _Looked(NamedTuple):
    """A dead job that was looked at."""

    id: UUID
    failed_at: datetime
    is_meant: bool


def running_bulks() -> list[UUID]:
    """The operations that want batches, the oldest first."""
    running = BulkOperation.objects.using(get_settings().database).filter(state=BulkState.RUNNING)
    return list(running.order_by("created_at", "id").values_list("id", flat=True))


def bulk_step(id: UUID) -> bool:
    """Do the next batch, unless another process does; True if there may be more to do at once."""
    alias = get_settings().database
    mine = BulkOperation.objects.using(alias).filter(pk=id, state=BulkState.RUNNING)
    try:
        with transaction.atomic(using=alias):
            row = mine.select_for_update(skip_locked=True).annotate(now=Now()).first()
            return row is not None and _Step(row).run()
    except Exception as error:
        mine.update(error=_shown(error))
        raise


def _shown(error: Exception) -> str:
    """By its first line: PostgreSQL's next one would show the row that failed, and its payload."""
    return clean_text(f"{type(error).__name__}: {Failure.of('', str(error)).summary}", LONGEST_ERROR)


class _Step:
    def __init__(self, row: BulkOperation) -> None:
        self._row = row
        self._now: datetime = row.now  # type: ignore[attr-defined]
        self._filter = DeadFilter.from_json(row.filter)
        self._is_canary = len(row.canary_ids) < row.canary

    def run(self) -> bool:
        row = self._row
        if row.total is None:
            row.total = self._dead_jobs().filter(self._filter.query()).count()
        allowed = self._allowed()
        if allowed <= 0:
            row.save(update_fields=["total", "spread_from"])
            return False
        looked = self._look()
        taken = self._taken(looked, allowed)
        self._move([job.id for job in taken if job.is_meant])
        if taken:
            row.cursor_at, row.cursor_id = taken[-1].failed_at, taken[-1].id
        self._settle(is_last=len(taken) == len(looked) < BATCH)
        return row.state == BulkState.RUNNING

    def _dead_jobs(self) -> QuerySet[DeadJob]:
        """What was dead at the request, from the cursor on."""
        row = self._row
        dead = DeadJob.objects.using(row._state.db).filter(failed_at__lte=row.snapshot_at)
        if row.cursor_at is None:
            return dead
        later = Q(failed_at__gt=row.cursor_at) | Q(failed_at=row.cursor_at, id__gt=row.cursor_id)
        return dead.filter(later, failed_at__gte=row.cursor_at)

    def _look(self) -> list[_Looked]:
        """An index gives the jobs of a group or of a span of time in order; all other terms are asked of each row."""
        meant = Q(pk__isnull=False) & self._filter.query()  # Django wants a condition
        is_meant = Case(When(meant, then=Value(True)), default=Value(False), output_field=BooleanField())
        jobs = self._dead_jobs().filter(self._filter.indexed().query()).annotate(is_meant=is_meant)
        rows = jobs.order_by("failed_at", "id").values_list("id", "failed_at", "is_meant")[:BATCH]
        return [_Looked(*row) for row in rows]

    def _allowed(self) -> int:
        """How many may be moved in this batch."""
        row = self._row
        if self._is_canary:
            return row.canary - len(row.canary_ids)
        left = (row.total or 0) - row.done - row.skipped
        if not row.spread or left <= 0:
            return BATCH
        row.spread_from = row.spread_from or self._now
        elapsed = self._now - row.spread_from + FIRST_SHARE
        return BATCH if elapsed >= row.spread else left - floor((1 - elapsed / row.spread) * (row.total or 0))

    def _taken(self, looked: list[_Looked], allowed: int) -> list[_Looked]:
        """Up to the last one that may be moved."""
        left = allowed
        for number, job in enumerate(looked):
            left -= job.is_meant
            if not left:
                return looked[: number + 1]
        return looked

    def _move(self, ids: list[UUID]) -> None:
        row = self._row
        moved = (requeue_batch if row.kind == BulkKind.RETRY else discard_batch)(ids) if ids else []
        if self._is_canary:
            row.canary_ids = [*row.canary_ids, *map(str, moved)]
        row.done += len(moved)
        row.skipped += len(ids) - len(moved)

    def _settle(self, *, is_last: bool) -> None:
        row = self._row
        if is_last:
            row.state, row.finished_at = BulkState.DONE, self._now
            # Who left the dead before their turn was meant too.
            row.skipped = max((row.total or 0) - row.done, row.skipped)
            self._audit()
        elif self._is_canary and len(row.canary_ids) >= row.canary:
            row.state = BulkState.CANARY
        row.error = ""
        row.save()

    def _audit(self) -> None:
        row = self._row
        actor = Actor(name=row.requested_by, id=row.actor_id, source=row.source)  # type: ignore[arg-type]
        numbers = {"done": row.done, "skipped": row.skipped}
        audit(actor, f"bulk_{row.kind}", "bulk_operation", row.id, count=row.done, after=numbers)
