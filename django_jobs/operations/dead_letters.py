"""What an operator does with dead jobs: give them fresh attempts, or give them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import JSONField, TextField, Value
from django.db.models.functions import Cast, Now

from django_jobs.chunks import chunks
from django_jobs.conf import get_settings
from django_jobs.engines import statements
from django_jobs.engines.protocol import NoPartition
from django_jobs.exceptions import InvalidPayload
from django_jobs.ids import uuid7_at
from django_jobs.models import DeadJob
from django_jobs.policy import JobType
from django_jobs.registry import registry

from .audit import Actor, audit, audit_each
from .lookup import job_uuid
from .options import check_duration
from .payload_view import shown_payload
from .transactions import jobs_connection, wake_after_commit

BATCH = 500


def retry_dead(
    ids: UUID | str | Iterable[UUID | str], *, delay: timedelta = timedelta(0), actor: Actor | None = None
) -> int:
    """Move dead jobs back to their queues: same id, same errors, fresh attempts. Returns how many were dead.

    In batches, each a transaction of its own unless the caller has one open; ids that are not dead (any more) are
    passed over. Raises JobNotFound for what is no id, InvalidOption for a delay that is none.
    """
    check_duration("delay", delay)
    return _in_batches(ids, lambda batch: requeue_batch(batch, delay), "retry", actor)


def discard_dead(ids: UUID | str | Iterable[UUID | str], *, actor: Actor | None = None) -> int:
    """Give dead jobs up: each becomes a history row ``discarded``. Returns how many were dead."""
    return _in_batches(ids, discard_batch, "discard", actor)


def retry_changed(id: UUID | str, payload: Any, *, actor: Actor | None = None) -> bool:
    """Retry one dead job with another payload, given as JSON data. False if it is not dead (any more).

    Raises InvalidPayload where it does not fit the handler's signature, UnknownJobType, JobNotFound. An
    idempotency key of the job goes on standing for the payload it was enqueued with.
    """
    job_id = job_uuid(id)
    with transaction.atomic(using=get_settings().database):
        mine = DeadJob.objects.using(get_settings().database).filter(pk=job_id)
        job = mine.select_for_update().first()
        if job is None:
            return False
        stored = _checked(registry.get(job.type), payload)
        mine.update(payload=Cast(Value(stored, output_field=TextField()), JSONField()))
        before, after = (shown_payload(job.type, value) for value in (job.payload, json.loads(stored)))
        moved = bool(requeue_batch([job_id]))
        audit(actor, "retry_changed", "job", job_id, before={"payload": before}, after={"payload": after})
    return moved


def requeue_batch(ids: list[UUID], delay: timedelta = timedelta(0)) -> list[UUID]:
    """Returns those moved."""
    connection = jobs_connection()
    placed = statements(connection.alias).requeue_dead(connection, ids, delay)
    if not delay:
        for queue in {queue for _, queue in placed}:
            wake_after_commit(connection, queue)
    return [job_id for job_id, _ in placed]


def discard_batch(ids: list[UUID]) -> list[UUID]:
    """Returns those moved. A day without a partition gets one."""
    connection = jobs_connection()
    engine = statements(connection.alias)
    dead = DeadJob.objects.using(connection.alias).filter(pk__in=ids)
    now = dead.values_list(Now(), flat=True).first()
    if now is None:
        return []
    history_ids = {job_id: uuid7_at(now) for job_id in ids}
    try:
        with transaction.atomic(using=connection.alias):
            return engine.discard_dead(connection, history_ids)
    except NoPartition:
        engine.add_partitions(connection, [now.date()])
        return engine.discard_dead(connection, history_ids)


def _in_batches(
    ids: UUID | str | Iterable[UUID | str], move: Callable[[list[UUID]], list[UUID]], action: str, actor: Actor | None
) -> int:
    count = 0
    for batch in chunks(map(job_uuid, [ids] if isinstance(ids, UUID | str) else ids), BATCH):
        with transaction.atomic(using=get_settings().database):
            moved = move(batch)
            audit_each(actor, action, "job", moved, before={"status": "dead"})
        count += len(moved)
    return count


def _checked(job_type: JobType, payload: Any) -> str:
    """As it is stored when it is enqueued."""
    if not isinstance(payload, dict):
        raise InvalidPayload(f"Payload of {job_type.name}: it must be a JSON object, not {type(payload).__name__}.")
    signature = job_type.signature
    try:
        text = json.dumps(payload)
    except (TypeError, ValueError) as error:
        raise InvalidPayload(f"Payload of {job_type.name}: it must be JSON data ({error}).") from error
    return signature.encode(signature.decode(text), limit=get_settings().max_payload_bytes).decode()
