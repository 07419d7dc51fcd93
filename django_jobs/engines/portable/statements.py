"""Portable statements on the caller's Django connection.

Enqueueing and completing write before they read, so that even in a deferred transaction they wait for another
writer instead of failing on a stale snapshot, unless the caller has read before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs import clock
from django_jobs.chunks import chunks
from django_jobs.engines.values import BulkPlaced, BulkRow, KeyHolder, NewJob, Placed
from django_jobs.ids import uuid7_range
from django_jobs.models import DeadJob, FinalStatus, IdempotencyKey, Job, JobHistory, JobStatus

from .folding import fold
from .ready_order import take_places
from .rows import CHUNK, Encoded, Values, copy_rows, delete_rows, insert_rows
from .settling import TO_HISTORY

TO_JOBS = {
    name: name
    for name in (
        "id",
        "queue",
        "type",
        "payload",
        "priority",
        "tenant",
        "created_at",
        "max_attempts",
        "idempotency_key",
        "last_error",
        "errors",
        "context",
    )
}
DEAD_TO_HISTORY = {name: origin for name, origin in TO_HISTORY.items() if name != "worker"} | {"errors": "errors"}


class PortableStatements:
    def enqueue(self, connection: BaseDatabaseWrapper, job: NewJob) -> Placed | None:
        row = BulkRow(job.id, job.payload, 0.0, job.key, job.payload_hash)
        (status,) = _insert(connection, job, [row], clock.now(), keyed=bool(job.key))
        return Placed(status=status) if status else None

    def enqueue_many(
        self, connection: BaseDatabaseWrapper, shared: NewJob, rows: Iterable[BulkRow], *, keyed: bool
    ) -> BulkPlaced:
        now = clock.now()
        statuses: list[str | None] = []
        for chunk in chunks(rows, CHUNK):
            statuses += _insert(connection, shared, chunk, now, keyed=keyed)
        return BulkPlaced(statuses=statuses, asleep=False)

    def enqueue_each(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[Placed]:
        return [placed for job in jobs if (placed := self.enqueue(connection, job)) is not None]

    def key_holder(self, connection: BaseDatabaseWrapper, queue: str, key: str) -> KeyHolder | None:
        alias = connection.alias
        taken = IdempotencyKey.objects.using(alias).filter(queue=queue, key=key).first()
        if taken is None:
            return None
        # In one statement: a dead job that is retried between two looks would be seen by neither.
        unfinished, dead = (model._default_manager.using(alias).filter(pk=taken.job_id) for model in (Job, DeadJob))
        is_over = not unfinished.values("pk").union(dead.values("pk")).exists()
        return KeyHolder(
            job_id=taken.job_id,
            payload_hash=bytes(taken.payload_hash),
            free=taken.expires_at <= clock.now() and is_over,
        )

    def free_key(self, connection: BaseDatabaseWrapper, queue: str, key: str, job_id: UUID) -> None:
        expired = IdempotencyKey.objects.using(connection.alias).filter(expires_at__lte=clock.now())
        expired.filter(queue=queue, key=key, job_id=job_id)._raw_delete(connection.alias)

    def wake(self, connection: BaseDatabaseWrapper, queue: str) -> None:
        pass

    def begin_run(self, connection: BaseDatabaseWrapper) -> None:
        """SQLite's transactions are serialisable, and that is all there is."""

    def complete_within(
        self,
        connection: BaseDatabaseWrapper,
        job_id: UUID,
        token: int,
        *,
        history_id: UUID,
        duration_ms: int,
        result: Any,
        metrics: Any,
    ) -> bool:
        now = clock.now()
        history = {
            "id": history_id,
            "status": FinalStatus.SUCCEEDED,
            "started_at": now - timedelta(milliseconds=duration_ms),
            "finished_at": now,
            "duration_ms": duration_ms,
            "result": result,
            "metrics": metrics,
        }
        with _atomic(connection):
            ours = Job.objects.using(connection.alias).filter(id=job_id, lease_token=token)
            if not ours.update(locked_until=now):
                return False
            copy_rows(connection, Job, JobHistory, TO_HISTORY | {"errors": "errors"}, {job_id: history})
            delete_rows(connection, Job, [job_id])
        return True

    def requeue_dead(
        self, connection: BaseDatabaseWrapper, ids: Sequence[UUID], delay: timedelta
    ) -> list[tuple[UUID, str]]:
        now = clock.now()
        moved: list[tuple[UUID, str]] = []
        with _atomic(connection):
            for chunk in chunks(ids, CHUNK):
                dead = DeadJob.objects.using(connection.alias).filter(id__in=chunk)
                found = list(dead.values_list("id", "queue"))
                placed = zip(found, _places([now + delay] * len(found), now), strict=True)
                copy_rows(connection, DeadJob, Job, TO_JOBS, {job_id: place for (job_id, _), place in placed})
                delete_rows(connection, DeadJob, [job_id for job_id, _ in found])
                moved += found
        return moved

    def discard_dead(self, connection: BaseDatabaseWrapper, ids: Mapping[UUID, UUID]) -> list[UUID]:
        now = clock.now()
        with _atomic(connection):
            dead = DeadJob.objects.using(connection.alias).filter(id__in=list(ids))
            found = list(dead.values_list("id", flat=True))
            ends = {"status": FinalStatus.DISCARDED, "finished_at": now}
            copy_rows(connection, DeadJob, JobHistory, DEAD_TO_HISTORY, {key: ends | {"id": ids[key]} for key in found})
            delete_rows(connection, DeadJob, found)
        return found

    def fold_dead_groups(self, connection: BaseDatabaseWrapper, limit: int, release: str) -> int:
        with _atomic(connection):
            return fold(connection.alias, limit, release)

    def wait_briefly(self, connection: BaseDatabaseWrapper) -> None:
        """SQLite has a time-out of its own, set by the project."""

    def stop_after(self, connection: BaseDatabaseWrapper, limit: timedelta) -> None:
        """SQLite cannot; its tables are small."""

    def was_stopped(self, error: DatabaseError) -> bool:
        return False

    def add_partitions(self, connection: BaseDatabaseWrapper, days: Iterable[date]) -> int:
        return 0

    def prune_history(self, connection: BaseDatabaseWrapper, before: date, limit: int) -> int:
        lowest, _ = uuid7_range(before)
        old = JobHistory.objects.using(connection.alias).filter(pk__lt=lowest)
        ids = list(old.order_by("pk").values_list("pk", flat=True)[:limit])
        return old.filter(pk__in=ids)._raw_delete(connection.alias) if ids else 0

    def freeze_history(self, connection: BaseDatabaseWrapper, before: date) -> int:
        return 0

    def server_time(self, connection: BaseDatabaseWrapper) -> datetime:
        return clock.now()


def _atomic(connection: BaseDatabaseWrapper) -> transaction.Atomic:
    return transaction.atomic(using=connection.alias, savepoint=False)


def _insert(
    connection: BaseDatabaseWrapper, shared: NewJob, rows: Sequence[BulkRow], now: datetime, *, keyed: bool
) -> list[str | None]:
    """The statuses of the rows; None where the key is taken."""
    start = (shared.run_at or now) + shared.delay
    due = [start + timedelta(seconds=row.offset) for row in rows]
    with _atomic(connection):
        taken = _take_keys(connection, shared, rows, due, now) if keyed else set()
        placed = list(_places(due, now))
        insert_rows(
            connection,
            Job,
            [_columns(shared, row) | place for row, place in zip(rows, placed, strict=True) if row.id not in taken],
        )
    return [None if row.id in taken else str(place["status"]) for row, place in zip(rows, placed, strict=True)]


def _places(due: Sequence[datetime], now: datetime) -> Iterator[dict[str, Any]]:
    """Ready or scheduled, and since when."""
    for run_at, ready_seq in zip(due, take_places(len(due)), strict=True):
        status = JobStatus.PENDING if run_at <= now else JobStatus.SCHEDULED
        yield {"run_at": run_at, "status": status, "ready_seq": ready_seq}


def _columns(shared: NewJob, row: BulkRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "queue": shared.queue,
        "type": shared.type,
        "payload": Encoded(row.payload),
        "priority": shared.priority,
        "tenant": shared.tenant,
        "max_attempts": shared.max_attempts,
        "context": Encoded(shared.context),
        "idempotency_key": row.key,
    }


def _take_keys(
    connection: BaseDatabaseWrapper,
    shared: NewJob,
    rows: Sequence[BulkRow],
    due: Sequence[datetime],
    now: datetime,
) -> set[UUID]:
    """Inserts the keys; returns the ids of the rows whose key somebody else has."""
    keys: list[Values] = [
        {
            "queue": shared.queue,
            "key": row.key,
            "job_id": row.id,
            "payload_hash": row.payload_hash,
            "expires_at": max(now, run_at) + shared.retention,
        }
        for row, run_at in zip(rows, due, strict=True)
    ]
    insert_rows(connection, IdempotencyKey, keys, skip_conflicts=True)
    ours = IdempotencyKey.objects.using(connection.alias).filter(
        queue=shared.queue, key__in={row.key for row in rows}, job_id__in=[row.id for row in rows]
    )
    return {row.id for row in rows} - set(ours.values_list("job_id", flat=True))
