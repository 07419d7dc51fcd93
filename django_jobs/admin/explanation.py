"""Why a job is not running, in the viewer's language and zone."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.utils import timezone
from django.utils.formats import date_format, number_format

from django_jobs.exceptions import JobNotFound
from django_jobs.operations.explain import causes


def explanation(job_id: UUID) -> list[str]:
    """One sentence for each reason; none for a job that is dead or finished, whose page says so anyway."""
    try:
        found = causes(job_id)
    except JobNotFound:
        return []
    return [cause.told(_local) for cause in found if cause.code not in ("dead", "finished")]


def _local(value: object) -> object:
    if isinstance(value, datetime):
        local = timezone.localtime(value)
        return f"{date_format(local, 'SHORT_DATE_FORMAT')} {local:%H:%M:%S}"
    return number_format(value, force_grouping=True) if isinstance(value, int) else value
