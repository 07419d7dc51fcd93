"""Writes the history rows of jobs that are cancelled outside a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, connections, transaction

from django_jobs.engines import statements
from django_jobs.ids import uuid7_at
from django_jobs.models import FinalStatus, Job, JobHistory


def record(jobs: Sequence[Job], status: FinalStatus, now: datetime, alias: str) -> None:
    """Add their rows. ``now`` is the database's time. The caller deletes the jobs in the same transaction.

    A day without a partition gets one.
    """
    rows = [_row(job, status, now) for job in jobs]
    history = JobHistory.objects.using(alias)
    try:
        with transaction.atomic(using=alias):
            history.bulk_create(rows)
    except IntegrityError:
        statements(alias).add_partitions(connections[alias], [now.date()])
        history.bulk_create(rows)


def _row(job: Job, status: FinalStatus, now: datetime) -> JobHistory:
    return JobHistory(
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
