"""What is too old, table by table. Each function removes one small batch and returns how many rows that was.

Nothing of a job that is unfinished or dead is ever removed, except by ``dead_jobs``, which gives them up.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from django_jobs.ids import lowest_uuid7, uuid7_range
from django_jobs.models import (
    Alert,
    AlertState,
    AuditEntry,
    BulkOperation,
    DeadGroup,
    DeadGroupHour,
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
HOURS_KEPT = timedelta(days=8)
EMPTY_GROUPS_KEPT = timedelta(days=180)


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
    """Those whose job is over: a slot that may not overlap asks for the others."""
    old = ScheduleSlot.objects.using(alias).filter(at__lt=before)
    return _delete(old.filter(_job_is_over()).order_by("at"), old)


def alerts(alias: str, before: datetime) -> int:
    old = Alert.objects.using(alias).filter(state=AlertState.RESOLVED, resolved_at__lt=before)
    return _delete(old.order_by("resolved_at"), old)


def audit_entries(alias: str, before: datetime) -> int:
    """Their ids sort by time."""
    old = AuditEntry.objects.using(alias).filter(pk__lt=lowest_uuid7(before))
    return _delete(old.order_by("pk"), old)


def bulk_operations(alias: str, before: datetime) -> int:
    old = BulkOperation.objects.using(alias).filter(finished_at__lt=before)
    return _delete(old.order_by("finished_at"), old)


def dead_group_hours(alias: str, now: datetime) -> int:
    """Hours that no chart shows."""
    old = DeadGroupHour.objects.using(alias).filter(hour__lt=now - HOURS_KEPT)
    return _delete(old.order_by("hour"), old)


def dead_groups(alias: str, now: datetime) -> int:
    """Groups that have been empty for half a year."""
    old = DeadGroup.objects.using(alias).filter(count=0, last_seen__lt=now - EMPTY_GROUPS_KEPT)
    return _delete(old.order_by("last_seen"), old)


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
