"""Where is this job? It is in exactly one of three tables, and may move while we look."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django_jobs.conf import get_settings
from django_jobs.exceptions import JobNotFound
from django_jobs.models import DeadJob, Job, JobHistory, JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job wherever it is. ``status`` is one of the public statuses.

    ``next_attempt_at`` is None when no attempt is to come. ``payload`` is None once the job is finished.
    ``errors`` are the first 2 and last 8 failed attempts, oldest first.
    """

    id: UUID
    type: str
    queue: str
    tenant: str
    status: str
    attempts: int
    enqueued_at: datetime
    max_attempts: int | None = None
    payload: Any = None
    next_attempt_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    duration_ms: int | None = None
    last_error: str = ""
    errors: tuple[dict[str, Any], ...] = ()
    progress: dict[str, Any] | None = None
    result: Any = None
    metrics: dict[str, Any] | None = None
    reason: str = ""
    cancel_requested: bool = False


def get_job(id: UUID | str) -> JobInfo:
    """The job with this id. Raises JobNotFound."""
    job_id = job_uuid(id)
    # Twice, because a dead job that is retried between the first two looks passes us by.
    for _ in range(2):
        for look in (_unfinished, _dead, _finished):
            if (found := look(job_id)) is not None:
                return found
    raise JobNotFound(
        f"No job has the id {job_id}. If it was enqueued in a transaction that has not committed, it is not there yet; "
        "a finished job is there as long as its row of the history."
    )


def status_of(job_id: UUID) -> str:
    """The public status; ``succeeded`` for a job whose history is past its retention."""
    try:
        return get_job(job_id).status
    except JobNotFound:
        return "succeeded"


def statuses_of(job_ids: Collection[UUID]) -> dict[UUID, str]:
    """``status_of`` each, with three queries for those that stay where they are meanwhile."""
    alias = get_settings().database
    jobs = Job.objects.using(alias).filter(pk__in=job_ids).values_list("id", "status", "last_error")
    found = {job_id: public_status(status, last_error) for job_id, status, last_error in jobs}
    missing = [job_id for job_id in job_ids if job_id not in found]
    if missing:
        found |= dict.fromkeys(DeadJob.objects.using(alias).filter(pk__in=missing).values_list("id", flat=True), "dead")
        finished = JobHistory.objects.using(alias).filter(job_id__in=missing).order_by("id")
        found |= dict(finished.values_list("job_id", "status"))
    return found | {job_id: status_of(job_id) for job_id in job_ids if job_id not in found}


def public_status(status: str, last_error: str) -> str:
    return "failed_retrying" if last_error and status != JobStatus.PROCESSING else status


def job_uuid(value: UUID | str) -> UUID:
    """Raises JobNotFound."""
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise JobNotFound(f"{value!r} is no job id: job ids are UUIDs.") from None


def _unfinished(job_id: UUID) -> JobInfo | None:
    job = Job.objects.using(get_settings().database).filter(pk=job_id).first()
    return None if job is None else unfinished_info(job)


def unfinished_info(job: Job) -> JobInfo:
    leased = job.status == JobStatus.PROCESSING
    return JobInfo(
        id=job.id,
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        status=public_status(job.status, job.last_error),
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        enqueued_at=job.created_at,
        payload=job.payload,
        next_attempt_at=None if leased else job.run_at,
        last_error=job.last_error,
        errors=tuple(job.errors),
        progress=job.progress,
        cancel_requested=job.cancel_requested_at is not None,
    )


def _dead(job_id: UUID) -> JobInfo | None:
    job = DeadJob.objects.using(get_settings().database).filter(pk=job_id).first()
    return None if job is None else dead_info(job)


def dead_info(job: DeadJob) -> JobInfo:
    return JobInfo(
        id=job.id,
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        status="dead",
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        enqueued_at=job.created_at,
        payload=job.payload,
        finished_at=job.failed_at,
        last_error=job.last_error,
        errors=tuple(job.errors),
        progress=job.progress,
        reason=job.reason,
    )


def _finished(job_id: UUID) -> JobInfo | None:
    row = JobHistory.objects.using(get_settings().database).filter(job_id=job_id).order_by("-id").first()
    if row is None:
        return None
    return JobInfo(
        id=row.job_id,
        type=row.type,
        queue=row.queue,
        tenant=row.tenant,
        status=row.status,
        attempts=row.attempts,
        enqueued_at=row.enqueued_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        duration_ms=row.duration_ms,
        errors=tuple(row.errors),
        last_error=row.errors[-1]["message"] if row.errors else "",
        result=row.result,
        metrics=row.metrics,
    )
