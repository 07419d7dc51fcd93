"""One search box: a job's id, an idempotency key, or a tenant's exact name."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from django_jobs.conf import get_settings
from django_jobs.models import IdempotencyKey


def as_job_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def jobs_with_key(text: str) -> list[UUID]:
    """By the key's primary key: one look-up for each declared queue."""
    keys = IdempotencyKey.objects.filter(queue__in=get_settings().queues, key=text)
    return list(keys.values_list("job_id", flat=True))


def searched(text: str, id_field: str) -> tuple[Q, bool]:
    """What the text stands for, and whether an index finds it."""
    if (job_id := as_job_id(text)) is not None:
        return Q(**{id_field: job_id}), True
    if found := jobs_with_key(text):
        return Q(**{f"{id_field}__in": found}), True
    return Q(tenant=text), False
