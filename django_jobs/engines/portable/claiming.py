"""Leasing ready jobs. Everything here runs in one IMMEDIATE transaction, so nobody else claims meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from django_jobs.engines.config import EngineConfig
from django_jobs.engines.values import ClaimedJob, ClaimRequest
from django_jobs.models import Job, JobStatus, Queue
from django_jobs.models.queue import paused

from .rows import update_rows

READY_ORDER = ("-priority", "ready_xid", "ready_seq")
USUAL = Q(lost_runs=0)
SUSPECT = Q(lost_runs__gt=0)


class _ReadyJob(NamedTuple):
    id: UUID
    type: str
    payload: str
    queue: str
    priority: int
    tenant: str
    attempts: int
    max_attempts: int
    lost_runs: int
    context: str
    untaken_since: datetime | None
    ready_seq: int


def anything_ready(alias: str, queues: Collection[str]) -> bool:
    """A look that takes no write lock."""
    pending = Job.objects.using(alias).filter(status=JobStatus.PENDING, queue__in=queues)
    return pending.filter(USUAL).exists() or pending.filter(SUSPECT).exists()


def claim(
    connection: BaseDatabaseWrapper, request: ClaimRequest, config: EngineConfig, now: datetime
) -> list[ClaimedJob]:
    """At most ``request.limit`` jobs, in ready order."""
    ready = _ready_jobs(connection.alias, request, now)
    if not ready:
        return []
    tokens = _take_tokens(connection, len(ready))
    leased = {
        "status": JobStatus.PROCESSING,
        "locked_by": config.worker,
        "locked_until": now + config.lease,
    }
    update_rows(
        connection,
        Job,
        {
            job.id: {**leased, "attempts": job.attempts + 1, "lease_token": token}
            for job, token in zip(ready, tokens, strict=True)
        },
    )
    patient_since = now - config.unknown_patience
    return [_claimed(job, token, patient_since) for job, token in zip(ready, tokens, strict=True)]


def paused_queues(alias: str, queues: Collection[str], now: datetime) -> set[str]:
    still = Queue.objects.using(alias).filter(paused(now), name__in=queues)
    return set(still.values_list("name", flat=True))


def _ready_jobs(alias: str, request: ClaimRequest, now: datetime) -> list[_ReadyJob]:
    """A suspect goes in front of everything, one at a time: it may kill its process again."""
    skipped = paused_queues(alias, request.queues, now)
    running = [queue for queue in request.queues if queue not in skipped]
    found: list[_ReadyJob] = []
    for kind, limit in ((SUSPECT, min(request.suspects, request.limit)), (USUAL, request.limit)):
        for queue in running:
            if len(found) < limit:
                found += _first_of(alias, queue, kind, limit - len(found))
    place = {queue: number for number, queue in enumerate(request.queues)}
    return sorted(found, key=lambda job: (place[job.queue], -job.priority, job.ready_seq))


def _first_of(alias: str, queue: str, kind: Q, limit: int) -> list[_ReadyJob]:
    ready: QuerySet[Any] = Job.objects.using(alias).filter(kind, queue=queue, status=JobStatus.PENDING)
    rows = ready.annotate(
        payload_text=Cast("payload", TextField()), context_text=Cast("context", TextField())
    ).values_list(
        "id",
        "type",
        "payload_text",
        "queue",
        "priority",
        "tenant",
        "attempts",
        "max_attempts",
        "lost_runs",
        "context_text",
        "untaken_since",
        "ready_seq",
    )
    return [_ReadyJob(*row) for row in rows.order_by(*READY_ORDER)[:limit]]


def _take_tokens(connection: BaseDatabaseWrapper, count: int) -> range:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_jobs_lease_token_seq SET last_value = last_value + %s", [count])
        cursor.execute("SELECT last_value FROM django_jobs_lease_token_seq")
        ((last,),) = cursor.fetchall()
    return range(last - count + 1, last + 1)


def _claimed(job: _ReadyJob, token: int, patient_since: datetime) -> ClaimedJob:
    return ClaimedJob(
        id=job.id,
        token=token,
        type=job.type,
        payload=job.payload,
        queue=job.queue,
        priority=job.priority,
        tenant=job.tenant,
        attempt=job.attempts + 1,
        max_attempts=job.max_attempts,
        lost_runs=job.lost_runs,
        context=job.context,
        given_up=job.untaken_since is not None and job.untaken_since < patient_since,
    )
