"""What becomes of a job whose idempotency key is taken: it is the first job again, a conflict, or the key is free."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.functions import Now

from django_jobs.chunks import chunks
from django_jobs.engines.protocol import Statements
from django_jobs.engines.values import BulkRow, KeyHolder, NewJob
from django_jobs.exceptions import EnqueueError, IdempotencyConflict
from django_jobs.models import IdempotencyKey

from .enqueued import EnqueuedJob
from .lookup import status_of, statuses_of
from .transactions import wake_after_commit

KEY_TRIES = 5
CHUNK = 500


def enqueue_against_key(connection: BaseDatabaseWrapper, engine: Statements, job: NewJob) -> EnqueuedJob:
    """The key was taken. By now its holder may be the same job, another one, or gone."""
    for _ in range(KEY_TRIES):
        holder = engine.key_holder(connection, job.queue, job.key)
        if holder is not None and not holder.free:
            return _duplicate(job, holder)
        if holder is not None:
            engine.free_key(connection, job.queue, job.key, holder.job_id)
        placed = engine.enqueue(connection, job)
        if placed is not None:
            if placed.asleep:
                wake_after_commit(connection, job.queue)
            return EnqueuedJob(job.id, placed.status)
    raise EnqueueError(
        f"Idempotency key {job.key!r} of queue {job.queue!r} is being taken and given up again and again. "
        "If this transaction is not READ COMMITTED it cannot see the key's holder: run it again."
    )


def _duplicate(job: NewJob, holder: KeyHolder) -> EnqueuedJob:
    if holder.payload_hash != job.payload_hash:
        raise IdempotencyConflict(
            f"Idempotency key {job.key!r} of queue {job.queue!r} belongs to job {holder.job_id}, which has another "
            "type or payload. Use a key that names everything the payload depends on.",
            job_id=holder.job_id,
        )
    return EnqueuedJob(holder.job_id, status_of(holder.job_id), duplicate=True)


def known_duplicates(connection: BaseDatabaseWrapper, queue: str, rows: Sequence[BulkRow]) -> dict[UUID, EnqueuedJob]:
    """Those of the rows, by their ids, whose key holds the same payload and has not expired.

    With a few queries for many rows; the others are left to ``enqueue_against_key``.
    """
    duplicates: dict[UUID, EnqueuedJob] = {}
    for chunk in chunks(rows, CHUNK):
        first_jobs = _same_jobs(connection, queue, chunk)
        statuses = statuses_of(set(first_jobs.values()))
        for row_id, job_id in first_jobs.items():
            duplicates[row_id] = EnqueuedJob(job_id, statuses[job_id], duplicate=True)
    return duplicates


def _same_jobs(connection: BaseDatabaseWrapper, queue: str, rows: Sequence[BulkRow]) -> dict[UUID, UUID]:
    keys = IdempotencyKey.objects.using(connection.alias).filter(queue=queue, key__in={row.key for row in rows})
    valid = keys.filter(expires_at__gt=Now()).values_list("key", "job_id", "payload_hash")
    holders = {key: (job_id, bytes(payload_hash)) for key, job_id, payload_hash in valid}
    found = ((row, *holders.get(row.key, (row.id, b""))) for row in rows)
    return {row.id: job_id for row, job_id, payload_hash in found if payload_hash == row.payload_hash}
