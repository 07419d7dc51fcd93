"""Pausing and resuming queues. A pause stops claims; what runs goes on."""

from __future__ import annotations

from datetime import datetime

from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.exceptions import InvalidOption
from django_jobs.models import Queue

from .transactions import jobs_connection, wake_after_commit


def pause(queue: str, *, until: datetime | None = None) -> None:
    """Claim nothing more from this queue, until ``resume()`` or ``until`` (aware). Raises UnknownQueue,
    InvalidOption.
    """
    settings = get_settings()
    if until is not None and (not isinstance(until, datetime) or until.utcoffset() is None):
        raise InvalidOption(
            f"until must be a datetime with a time zone, not {until!r}. "
            "Use django.utils.timezone.now() or make_aware()."
        )
    Queue.objects.using(settings.database).update_or_create(
        name=settings.declared(queue), defaults={"paused_at": Now(), "resume_at": until}
    )


def resume(queue: str) -> None:
    """Claim from this queue again. Raises UnknownQueue."""
    settings = get_settings()
    Queue.objects.using(settings.database).filter(name=settings.declared(queue)).update(paused_at=None, resume_at=None)
    wake_after_commit(jobs_connection(), queue)
