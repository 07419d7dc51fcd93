"""What an operator does with dead jobs: give them fresh attempts, or give them up."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.engines import statements
from django_jobs.models import DeadJob, FinalStatus

from .history import record
from .lookup import job_uuid
from .options import check_duration
from .transactions import jobs_connection, wake_after_commit

BATCH = 500


def retry_dead(ids: UUID | str | Iterable[UUID | str], *, delay: timedelta = timedelta(0)) -> int:
    """Move dead jobs back to their queues: same id, same errors, fresh attempts. Returns how many were dead.

    In batches, each a transaction of its own unless the caller has one open; ids that are not dead (any more) are
    passed over. Raises JobNotFound for what is no id, InvalidOption for a delay that is none.
    """
    check_duration("delay", delay)
    connection = jobs_connection()
    engine = statements(connection.alias)
    moved = 0
    for batch in _batches(ids):
        placed = engine.requeue_dead(connection, batch, delay)
        moved += len(placed)
        if not delay:
            for queue in {queue for _, queue in placed}:
                wake_after_commit(connection, queue)
    return moved


def discard_dead(ids: UUID | str | Iterable[UUID | str]) -> int:
    """Give dead jobs up: each becomes a history row ``discarded``. Returns how many were dead."""
    return sum(_discard_batch(batch, get_settings().database) for batch in _batches(ids))


def _discard_batch(batch: list[UUID], alias: str) -> int:
    with transaction.atomic(using=alias):
        dead = DeadJob.objects.using(alias).select_for_update(skip_locked=True).filter(pk__in=batch).annotate(now=Now())
        jobs = list(dead.order_by("pk"))
        if jobs:
            record(jobs, FinalStatus.DISCARDED, jobs[0].now, alias)
        DeadJob.objects.using(alias).filter(pk__in=[job.pk for job in jobs]).delete()
    return len(jobs)


def _batches(ids: UUID | str | Iterable[UUID | str]) -> Iterable[list[UUID]]:
    stream = map(job_uuid, [ids] if isinstance(ids, UUID | str) else ids)
    while batch := list(islice(stream, BATCH)):
        yield batch
