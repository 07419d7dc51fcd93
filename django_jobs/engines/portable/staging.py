"""Moving due jobs to pending, one transaction for each queue and priority."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from django_jobs.engines.protocol import MAX_STAGED
from django_jobs.engines.values import Staging
from django_jobs.models import Job, JobStatus

from .ready_order import take_places
from .rows import update_rows


class _Group(NamedTuple):
    queue: str
    priority: int
    first_run_at: datetime


def stage(connection: BaseDatabaseWrapper, now: datetime) -> Staging:
    staged, queues = 0, set()
    for group in _groups(connection.alias):
        if group.first_run_at <= now and (moved := _stage_group(connection, group, now)):
            staged += moved
            queues.add(group.queue)
    return Staging(staged=staged, queues=frozenset(queues), next_due=next_due(connection.alias, now))


def next_due(alias: str, now: datetime) -> timedelta | None:
    """Time until the next scheduled job, zero when it is due."""
    ahead = [group.first_run_at for group in _groups(alias)]
    return max(min(ahead) - now, timedelta(0)) if ahead else None


def _stage_group(connection: BaseDatabaseWrapper, group: _Group, now: datetime) -> int:
    with transaction.atomic(using=connection.alias):
        due = _scheduled(connection.alias).filter(queue=group.queue, priority=group.priority, run_at__lte=now)
        ids = list(due.order_by("run_at").values_list("id", flat=True)[:MAX_STAGED])
        places = take_places(len(ids))
        pending = {
            job_id: {"status": JobStatus.PENDING, "ready_seq": place} for job_id, place in zip(ids, places, strict=True)
        }
        update_rows(connection, Job, pending)
    return len(ids)


def _groups(alias: str) -> list[_Group]:
    """Every queue and priority with scheduled jobs, highest first, each with its earliest ``run_at``."""
    return sorted(_hops(alias), key=lambda group: -group.priority)


def _hops(alias: str) -> Iterator[_Group]:
    """From group to group by the index: one descent a group, however many jobs it holds."""
    group = _first(_scheduled(alias))
    while group is not None:
        yield group
        lower = _scheduled(alias).filter(queue=group.queue, priority__lt=group.priority)
        group = _first(lower) or _first(_scheduled(alias).filter(queue__gt=group.queue))


def _first(jobs: QuerySet[Job]) -> _Group | None:
    row = jobs.order_by("queue", "-priority", "run_at").values_list("queue", "priority", "run_at").first()
    return _Group(*row) if row else None


def _scheduled(alias: str) -> QuerySet[Job]:
    return Job.objects.using(alias).filter(status=JobStatus.SCHEDULED)
