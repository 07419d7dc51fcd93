"""Tells the receivers of ``jobs_enqueued`` about jobs that were really written, once they are committed."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.policy import JobType
from django_jobs.signals import jobs_enqueued

from .enqueued import EnqueuedJob


def announce_after_commit(
    connection: BaseDatabaseWrapper, job_type: JobType, queue: str, jobs: Iterable[EnqueuedJob]
) -> None:
    """Costs nothing to speak of while nobody listens."""
    if not jobs_enqueued.has_listeners(job_type) or not _hears_of_commits(connection):
        return
    new = [job for job in jobs if not job.duplicate]

    def announce() -> None:
        jobs_enqueued.send_robust(job_type, queue=queue, jobs=new)

    if new:
        transaction.on_commit(announce, using=connection.alias, robust=True)


def _hears_of_commits(connection: BaseDatabaseWrapper) -> bool:
    return connection.in_atomic_block or connection.get_autocommit()
