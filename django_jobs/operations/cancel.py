"""Cancelling: at once if the job has not started, on request if it runs."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.models import FinalStatus, Job, JobStatus

from .audit import Actor, audit
from .history import record_cancelled
from .lookup import get_job, job_uuid
from .unfinished import locked_job

Cancellation = Literal["cancelled", "requested", "too_late"]
UNFINISHED = (*JobStatus.values, "failed_retrying")


def cancel(id: UUID | str, *, actor: Actor | None = None) -> Cancellation:
    """Cancel a job. Raises JobNotFound.

    ``cancelled``: it will not run (again), also if it was cancelled before. ``requested``: it is running; the
    handler sees ``run.is_cancelled()``, and any ending but success becomes ``cancelled``. ``too_late``: it is
    finished or dead.
    """
    alias = get_settings().database
    job_id = job_uuid(id)
    while True:
        with transaction.atomic(using=alias):
            job = locked_job(job_id)
            if job is not None:
                done = _cancel_locked(job, alias)
                audit(actor, "cancel", "job", job_id, before={"status": job.status}, after={"cancellation": done})
                return done
        status = get_job(job_id).status
        if status not in UNFINISHED:
            return "cancelled" if status == FinalStatus.CANCELLED else "too_late"
        # A dead job that an operator has just given fresh attempts.


def _cancel_locked(job: Job, alias: str) -> Cancellation:
    mine = Job.objects.using(alias).filter(pk=job.pk)
    if job.status == JobStatus.PROCESSING:
        mine.filter(cancel_requested_at=None).update(cancel_requested_at=Now())
        return "requested"
    mine.delete()
    record_cancelled(job, job.now, alias)  # type: ignore[attr-defined]
    return "cancelled"
