"""Holding an unfinished job still while an operator's change is decided and written."""

from __future__ import annotations

from uuid import UUID

from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.models import Job


def locked_job(job_id: UUID) -> Job | None:
    """The unfinished job with the database's time as ``now``, locked until the open transaction ends.

    FOR UPDATE sees the newest version, so a claim that has just committed is not overlooked.
    """
    rows = Job.objects.using(get_settings().database).select_for_update().filter(pk=job_id)
    return rows.annotate(now=Now()).first()
