"""What is too old, table by table. Each function removes one small batch and returns how many rows that was.

Nothing of a job that is unfinished or dead is ever removed, except by ``dead_jobs``, which gives them up.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from django_jobs.ids import uuid7_range
from django_jobs.models import (
    Alert,
    AlertState,
    DeadJob,
    Effect,
    IdempotencyKey,
    Job,
    JobCount,
    ScheduleSlot,
    Worker,
)
from django_jobs.operations.dead_letters import discard_dead

BATCH = 1000
UNSEEN = timedelta(days=1)


def idempotency_keys(alias: str, now: datetime) -> int:
    """Expired ones whose job is over."""
    expired = IdempotencyKey.objects.using(alias).filter(expires_at__lte=now)
    # Asked again when deleting: whoever took the key anew meanwhile has moved its expiry.
    return _delete(expired.filter(_job_is_over()).order_by("expires_at"), expired)


def effects(alias: str, now: datetime) -> int:
    """Marks of jobs that are over and were enqueued before yesterday."""
    yesterday, _ = uuid7_range((now - UNSEEN).date())
    old = Effect.objects.using(alias).filter(job_id__lt=yesterday)
    return _delete(old.filter(_job_is_over()).order_by("job_id"), old)


def dead_jobs(alias: str, before: datetime) -> int:
    """Given up, as an operator would."""
    old = DeadJob.objects.using(alias).filter(failed_at__lt=before).order_by("failed_at")
    return discard_dead(list(old.values_list("pk", flat=True)[:BATCH]))


def counts(alias: str, before: datetime) -> int:
    old = JobCount.objects.using(alias).filter(minute__lt=before)
    return _delete(old.order_by("minute"), old)


def slots(alias: str, before: datetime) -> int:
    old = ScheduleSlot.objects.using(alias).filter(at__lt=before)
    return _delete(old.order_by("at"), old)


def alerts(alias: str, before: datetime) -> int:
    old = Alert.objects.using(alias).filter(state=AlertState.RESOLVED, resolved_at__lt=before)
    return _delete(old.order_by("resolved_at"), old)


def workers(alias: str, now: datetime) -> int:
    """Processes not seen for a day."""
    gone = Worker.objects.using(alias).filter(last_seen_at__lt=now - UNSEEN)
    return _delete(gone.order_by("last_seen_at"), gone)


def _job_is_over() -> Q:
    job = OuterRef("job_id")
    return ~Q(Exists(Job.objects.filter(pk=job))) & ~Q(Exists(DeadJob.objects.filter(pk=job)))


def _delete(chosen: QuerySet[Any], still: QuerySet[Any]) -> int:
    """Of the first BATCH of ``chosen`` those that are ``still`` to be deleted."""
    keys = list(chosen.values_list("pk", flat=True)[:BATCH])
    return still.filter(pk__in=keys)._raw_delete(still.db) if keys else 0
