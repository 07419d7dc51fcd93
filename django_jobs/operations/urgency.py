"""An operator's hand on the order of things: this job now, or sooner or later than others of its queue."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.models import Job, JobStatus

from .audit import Actor, audit
from .lookup import get_job, job_uuid
from .options import check_priority
from .unfinished import locked_job

Change = Literal["changed", "unchanged", "running", "over"]


def run_now(id: UUID | str, *, actor: Actor | None = None) -> Change:
    """Make a scheduled job due, also one that waits for its next attempt. Raises JobNotFound.

    ``changed``: the next staging pass makes it ready. ``unchanged``: it is ready already. ``running`` and ``over``:
    too late.
    """
    return _change(job_uuid(id), actor, "run_now", {"run_at": Now()}, only=JobStatus.SCHEDULED)


def change_priority(id: UUID | str, priority: int, *, actor: Actor | None = None) -> Change:
    """Move a job that waits in front of those with a lower priority. Raises JobNotFound, InvalidOption.

    ``running`` and ``over``: too late. The next attempt of a running job is not changed either.
    """
    check_priority(priority)
    return _change(job_uuid(id), actor, "change_priority", {"priority": priority})


def _change(
    job_id: UUID, actor: Actor | None, action: str, values: dict[str, Any], *, only: JobStatus | None = None
) -> Change:
    alias = get_settings().database
    with transaction.atomic(using=alias):
        job = locked_job(job_id)
        if job is None:
            get_job(job_id)
            return "over"
        if job.status == JobStatus.PROCESSING:
            return "running"
        if only not in (None, job.status) or all(getattr(job, name) == value for name, value in values.items()):
            return "unchanged"
        mine = Job.objects.using(alias).filter(pk=job_id)
        mine.update(**values)
        before, after = ({name: _shown(getattr(row, name)) for name in values} for row in (job, mine.get()))
        audit(actor, action, "job", job_id, before=before, after=after)
    return "changed"


def _shown(value: Any) -> Any:
    return value if isinstance(value, int) else value.isoformat()
