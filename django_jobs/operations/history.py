"""Writes the history row of a job that is cancelled outside a run."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, connections, transaction

from django_jobs.engines import statements
from django_jobs.ids import uuid7_at
from django_jobs.models import FinalStatus, Job, JobHistory


def record_cancelled(job: Job, now: datetime, alias: str) -> None:
    """``now`` is the database's time. The caller deletes the job in the same transaction.

    A day without a partition gets one.
    """
    row = JobHistory(
        id=uuid7_at(now),
        job_id=job.id,
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        status=FinalStatus.CANCELLED,
        attempts=job.attempts,
        enqueued_at=job.created_at,
        finished_at=now,
        errors=job.errors,
    )
    history = JobHistory.objects.using(alias)
    try:
        with transaction.atomic(using=alias):
            history.bulk_create([row])
    except IntegrityError:
        statements(alias).add_partitions(connections[alias], [now.date()])
        history.bulk_create([row])
