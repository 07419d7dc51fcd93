"""Why is this job not running? Every cause there is, in the words of whoever looks after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_jobs.conf import get_settings
from django_jobs.exceptions import InvalidPayload
from django_jobs.models import Job, JobStatus, Queue, Worker
from django_jobs.models.queue import paused
from django_jobs.models.worker import alive, queues_in
from django_jobs.registry import registry

from .lookup import JobInfo, get_job, job_uuid

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

MOST_COUNTED = 1000
MOST_WORKERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """``code`` is for programs, ``sentence`` for people, ``detail`` holds what the sentence speaks of."""

    code: str
    sentence: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A reason whose sentence is not written yet. ``template``: a lazy translation with places for ``detail``."""

    code: str
    template: StrPromise
    detail: dict[str, Any] = field(default_factory=dict)

    def told(self, write: Callable[[Any], object]) -> str:
        return self.template % {name: write(value) for name, value in self.detail.items()}


def explain(id: UUID | str) -> tuple[Reason, ...]:
    """Everything that keeps this job from running, or that it is running, finished or dead. Raises JobNotFound.

    Of workers and of what this build knows it says what it sees; the life of a job depends on neither. The sentences
    are in the active language.
    """
    return tuple(
        Reason(code=cause.code, sentence=cause.told(_plain), detail=cause.detail) for cause in causes(job_uuid(id))
    )


def causes(job_id: UUID) -> list[Cause]:
    while True:
        job = Job.objects.using(get_settings().database).filter(pk=job_id).annotate(now=Now()).first()
        if job is not None:
            return list(_unfinished(job, job.now))
        info = get_job(job_id)
        if info.finished_at is not None:
            return [_dead(info) if info.status == "dead" else _finished(info)]
        # It was dead, and has just been given fresh attempts.


def _dead(info: JobInfo) -> Cause:
    return Cause(
        code="dead",
        template=ngettext_lazy(
            "It is dead since %(since)s (%(reason)s) after %(attempts)s attempt, until somebody retries or discards "
            "it.",
            "It is dead since %(since)s (%(reason)s) after %(attempts)s attempts, until somebody retries or discards "
            "it.",
            info.attempts,
        ),
        detail={"reason": info.reason, "since": info.finished_at, "attempts": info.attempts},
    )


def _finished(info: JobInfo) -> Cause:
    return Cause(
        code="finished",
        template=_("It is finished since %(since)s: %(status)s."),
        detail={"status": info.status, "since": info.finished_at},
    )


def _unfinished(job: Job, now: datetime) -> Iterator[Cause]:
    if job.cancel_requested_at is not None:
        yield Cause(
            code="cancel_requested",
            template=_("Its cancellation was asked for at %(since)s: unless this run succeeds, it ends as cancelled."),
            detail={"since": job.cancel_requested_at},
        )
    if job.status == JobStatus.PROCESSING:
        yield _leased(job, now)
        return
    obstacles = [*_time(job, now), *_queue(job, now), *_build(job), *_line(job)]
    yield from obstacles or [Cause(code="next", template=_("Nothing is in its way: it is the next of its queue."))]


def _leased(job: Job, now: datetime) -> Cause:
    detail = {
        "worker": job.locked_by,
        "until": job.locked_until,
        "attempt": job.attempts,
        "max_attempts": job.max_attempts,
    }
    if job.locked_until is not None and job.locked_until < now:
        return Cause(
            code="lease_ran_out",
            template=_(
                "Its worker %(worker)s is silent and its lease ran out at %(until)s: a rescue pass will give it "
                "another attempt."
            ),
            detail=detail,
        )
    return Cause(
        code="running",
        template=_(
            "It is with worker %(worker)s, attempt %(attempt)s of %(max_attempts)s; the lease is good until %(until)s."
        ),
        detail=detail,
    )


def _time(job: Job, now: datetime) -> Iterator[Cause]:
    if job.status != JobStatus.SCHEDULED:
        return
    detail = {"run_at": job.run_at, "attempts": job.attempts}
    if job.run_at <= now:
        yield Cause(code="due", template=_("It is due: the next staging pass makes it ready."), detail=detail)
    elif job.untaken_since is not None:
        yield Cause(
            code="untaken",
            template=_(
                "No worker could take it since %(since)s (unknown type, or a payload that did not fit): it is offered "
                "again at %(run_at)s."
            ),
            detail=detail | {"since": job.untaken_since},
        )
    elif job.last_error and job.attempts:
        yield Cause(
            code="retry_delay",
            template=_(
                "Attempt %(attempts)s of %(max_attempts)s failed (%(last_error)s): the next is due at %(run_at)s."
            ),
            detail=detail | {"max_attempts": job.max_attempts, "last_error": job.last_error},
        )
    else:
        yield Cause(code="scheduled", template=_("It is scheduled for %(run_at)s."), detail=detail)


def _queue(job: Job, now: datetime) -> Iterator[Cause]:
    alias, name = get_settings().database, job.queue
    row = Queue.objects.using(alias).filter(paused(now), name=name).first()
    if row is not None:
        forever = _("Its queue %(queue)s is paused since %(since)s, until somebody resumes it.")
        for_a_while = _("Its queue %(queue)s is paused since %(since)s, until %(until)s.")
        yield Cause(
            code="queue_paused",
            template=forever if row.resume_at is None else for_a_while,
            detail={"queue": name, "since": row.paused_at, "until": row.resume_at},
        )
    workers = Worker.objects.using(alias).filter(alive(now))
    served = workers.order_by("-last_seen_at").values_list("queues", flat=True)[:MOST_WORKERS]
    if not any(name in queues_in(groups) for groups in served):
        declared = name in get_settings().queues
        idle = _(
            "No worker that was seen in the last minute serves its queue %(queue)s. Start one: "
            "manage.py runjobworker --queues %(queue)s"
        )
        unknown = _(
            "No worker that was seen in the last minute serves its queue %(queue)s, and the queue is not in "
            "DJANGO_JOBS['QUEUES']."
        )
        yield Cause(
            code="no_worker", template=idle if declared else unknown, detail={"queue": name, "declared": declared}
        )


def _build(job: Job) -> Iterator[Cause]:
    job_type = registry.find(job.type)
    if job_type is None:
        yield Cause(
            code="unknown_type",
            template=_("This build has no handler for %(type)s: a worker of the same build cannot run it."),
            detail={"type": job.type},
        )
        return
    try:
        job_type.signature.decode(json.dumps(job.payload))
    except InvalidPayload as error:
        yield Cause(
            code="bad_payload",
            template=_("Its payload does not fit the handler of this build: %(error)s."),
            detail={"error": str(error)},
        )


def _line(job: Job) -> Iterator[Cause]:
    if job.status != JobStatus.PENDING:
        return
    if job.lost_runs:
        yield Cause(
            code="suspect",
            template=_(
                "%(lost_runs)s of its runs were lost with their workers, so a process runs it only while it has no "
                "other such job."
            ),
            detail={"lost_runs": job.lost_runs},
        )
    ahead = _jobs_ahead(job)
    if ahead:
        so_many = ngettext_lazy(
            "%(count)s job of its queue is in front of it.", "%(count)s jobs of its queue are in front of it.", ahead
        )
        at_least = _("%(count)s or more jobs of its queue are in front of it.")
        is_capped = ahead >= MOST_COUNTED
        yield Cause(
            code="jobs_ahead",
            template=at_least if is_capped else so_many,
            detail={"count": ahead, "at_least": is_capped},
        )


def _jobs_ahead(job: Job) -> int:
    """In the order of the claim, up to MOST_COUNTED: the index is read from its front and no further."""
    alike = {"lost_runs__gt": 0} if job.lost_runs else {"lost_runs": 0}
    pending = Job.objects.using(get_settings().database).filter(queue=job.queue, status=JobStatus.PENDING, **alike)
    sooner = Q(ready_xid__lt=job.ready_xid) | Q(ready_xid=job.ready_xid, ready_seq__lt=job.ready_seq)
    ahead = pending.filter(Q(priority__gt=job.priority) | Q(priority=job.priority) & sooner)
    return ahead.order_by("-priority", "ready_xid", "ready_seq")[:MOST_COUNTED].count()


def _plain(value: Any) -> object:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S %Z}"
    return f"{value:,}" if isinstance(value, int) else value
