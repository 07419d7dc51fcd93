"""Why is this job not running? Every cause there is, in the words of whoever looks after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.exceptions import InvalidPayload
from django_jobs.models import Job, JobStatus, Queue, Worker
from django_jobs.models.queue import paused
from django_jobs.models.worker import alive, queues_in
from django_jobs.registry import registry

from .lookup import JobInfo, get_job, job_uuid

MOST_COUNTED = 1000
MOST_WORKERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """``code`` is for programs, ``sentence`` for people, ``detail`` holds what the sentence speaks of."""

    code: str
    sentence: str
    detail: dict[str, Any] = field(default_factory=dict)


def explain(id: UUID | str) -> tuple[Reason, ...]:
    """Everything that keeps this job from running, or that it is running, finished or dead. Raises JobNotFound.

    Of workers and of what this build knows it says what it sees; the life of a job depends on neither.
    """
    job_id = job_uuid(id)
    while True:
        job = Job.objects.using(get_settings().database).filter(pk=job_id).annotate(now=Now()).first()
        if job is not None:
            return tuple(_unfinished(job, job.now))
        info = get_job(job_id)
        if info.finished_at is not None:
            return (_dead(info) if info.status == "dead" else _finished(info),)
        # It was dead, and has just been given fresh attempts.


def _dead(info: JobInfo) -> Reason:
    attempts = f"{info.attempts} attempt{'s' * (info.attempts != 1)}"
    return Reason(
        code="dead",
        sentence=f"It is dead since {_at(info.finished_at)} ({info.reason}) after {attempts}, until somebody retries "
        "or discards it.",
        detail={"reason": info.reason, "since": info.finished_at, "attempts": info.attempts},
    )


def _finished(info: JobInfo) -> Reason:
    return Reason(
        code="finished",
        sentence=f"It is finished since {_at(info.finished_at)}: {info.status}.",
        detail={"status": info.status, "since": info.finished_at},
    )


def _unfinished(job: Job, now: datetime) -> Iterator[Reason]:
    if job.cancel_requested_at is not None:
        yield Reason(
            code="cancel_requested",
            sentence=f"Its cancellation was asked for at {_at(job.cancel_requested_at)}: unless this run succeeds, it "
            "ends as cancelled.",
            detail={"since": job.cancel_requested_at},
        )
    if job.status == JobStatus.PROCESSING:
        yield _leased(job, now)
        return
    obstacles = [*_time(job, now), *_queue(job, now), *_build(job), *_line(job)]
    yield from obstacles or [Reason(code="next", sentence="Nothing is in its way: it is the next of its queue.")]


def _leased(job: Job, now: datetime) -> Reason:
    detail = {"worker": job.locked_by, "until": job.locked_until, "attempt": job.attempts}
    if job.locked_until is not None and job.locked_until < now:
        return Reason(
            code="lease_ran_out",
            sentence=f"Its worker {job.locked_by} is silent and its lease ran out at {_at(job.locked_until)}: a rescue "
            "pass will give it another attempt.",
            detail=detail,
        )
    return Reason(
        code="running",
        sentence=f"It is with worker {job.locked_by}, attempt {job.attempts} of {job.max_attempts}; the lease is good "
        f"until {_at(job.locked_until)}.",
        detail=detail,
    )


def _time(job: Job, now: datetime) -> Iterator[Reason]:
    if job.status != JobStatus.SCHEDULED:
        return
    detail = {"run_at": job.run_at, "attempts": job.attempts}
    if job.run_at <= now:
        yield Reason(code="due", sentence="It is due: the next staging pass makes it ready.", detail=detail)
    elif job.untaken_since is not None:
        yield Reason(
            code="untaken",
            sentence=f"No worker could take it since {_at(job.untaken_since)} (unknown type, or a payload that did not "
            f"fit): it is offered again at {_at(job.run_at)}.",
            detail=detail | {"since": job.untaken_since},
        )
    elif job.last_error and job.attempts:
        yield Reason(
            code="retry_delay",
            sentence=f"Attempt {job.attempts} of {job.max_attempts} failed ({job.last_error}): the next is due at "
            f"{_at(job.run_at)}.",
            detail=detail | {"last_error": job.last_error},
        )
    else:
        yield Reason(code="scheduled", sentence=f"It is scheduled for {_at(job.run_at)}.", detail=detail)


def _queue(job: Job, now: datetime) -> Iterator[Reason]:
    alias, name = get_settings().database, job.queue
    row = Queue.objects.using(alias).filter(paused(now), name=name).first()
    if row is not None:
        until = "until somebody resumes it" if row.resume_at is None else f"until {_at(row.resume_at)}"
        yield Reason(
            code="queue_paused",
            sentence=f"Its queue {name} is paused since {_at(row.paused_at)}, {until}.",
            detail={"queue": name, "since": row.paused_at, "until": row.resume_at},
        )
    workers = Worker.objects.using(alias).filter(alive(now))
    served = workers.order_by("-last_seen_at").values_list("queues", flat=True)[:MOST_WORKERS]
    if not any(name in queues_in(groups) for groups in served):
        declared = "" if name in get_settings().queues else ", and the queue is not in DJANGO_JOBS['QUEUES']"
        yield Reason(
            code="no_worker",
            sentence=f"No worker that was seen in the last minute serves its queue {name}{declared}. "
            f"Start one: manage.py runjobworker --queues {name}",
            detail={"queue": name, "declared": not declared},
        )


def _build(job: Job) -> Iterator[Reason]:
    job_type = registry.find(job.type)
    if job_type is None:
        yield Reason(
            code="unknown_type",
            sentence=f"This build has no handler for {job.type}: a worker of the same build cannot run it.",
            detail={"type": job.type},
        )
        return
    try:
        job_type.signature.decode(json.dumps(job.payload))
    except InvalidPayload as error:
        yield Reason(
            code="bad_payload",
            sentence=f"Its payload does not fit the handler of this build: {error}.",
            detail={"error": str(error)},
        )


def _line(job: Job) -> Iterator[Reason]:
    if job.status != JobStatus.PENDING:
        return
    if job.lost_runs:
        yield Reason(
            code="suspect",
            sentence=f"{job.lost_runs} of its runs were lost with their workers, so a process runs it only while it "
            "has no other such job.",
            detail={"lost_runs": job.lost_runs},
        )
    ahead = _jobs_ahead(job)
    if ahead:
        count = f"{MOST_COUNTED:,} or more jobs" if ahead >= MOST_COUNTED else f"{ahead:,} job{'s' * (ahead > 1)}"
        yield Reason(
            code="jobs_ahead",
            sentence=f"{count} of its queue {'is' if ahead == 1 else 'are'} in front of it.",
            detail={"count": ahead, "at_least": ahead >= MOST_COUNTED},
        )


def _jobs_ahead(job: Job) -> int:
    """In the order of the claim, up to MOST_COUNTED: the index is read from its front and no further."""
    alike = {"lost_runs__gt": 0} if job.lost_runs else {"lost_runs": 0}
    pending = Job.objects.using(get_settings().database).filter(queue=job.queue, status=JobStatus.PENDING, **alike)
    sooner = Q(ready_xid__lt=job.ready_xid) | Q(ready_xid=job.ready_xid, ready_seq__lt=job.ready_seq)
    ahead = pending.filter(Q(priority__gt=job.priority) | Q(priority=job.priority) & sooner)
    return ahead.order_by("-priority", "ready_xid", "ready_seq")[:MOST_COUNTED].count()


def _at(instant: datetime | None) -> str:
    return "" if instant is None else f"{instant:%Y-%m-%d %H:%M:%S %Z}"
