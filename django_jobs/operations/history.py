"""Writes the history row of a job that ends outside a run."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, connections, transaction

from django_jobs.engines import statements
from django_jobs.ids import uuid7_at
from django_jobs.models import DeadJob, FinalStatus, Job, JobHistory


def record(job: Job | DeadJob, status: FinalStatus, now: datetime, alias: str) -> None:
    """Add the row. ``now`` is the database's time. The caller deletes the job in the same transaction.

    A day without a partition gets one.
    """
    row = JobHistory(
        id=uuid7_at(now),
        job_id=job.id,
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        status=status,
        attempts=job.attempts,
        enqueued_at=job.created_at,
        finished_at=now,
        errors=job.errors,
    )
    try:
        with transaction.atomic(using=alias):
            row.save(using=alias, force_insert=True)
    except IntegrityError:
        if not statements(alias).add_partitions(connections[alias], [now.date()]):
            raise
        row.save(using=alias, force_insert=True)
