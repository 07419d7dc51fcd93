"""Pausing and resuming queues. A pause stops claims; what runs goes on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from django_jobs.conf import get_settings
from django_jobs.exceptions import InvalidOption
from django_jobs.models import Queue

from .audit import Actor, audit
from .transactions import jobs_connection, wake_after_commit


def pause(queue: str, *, until: datetime | None = None, actor: Actor | None = None) -> None:
    """Claim nothing more from this queue, until ``resume()`` or ``until`` (aware). Raises UnknownQueue,
    InvalidOption.
    """
    settings = get_settings()
    if until is not None and (not isinstance(until, datetime) or until.utcoffset() is None):
        raise InvalidOption(
            _("until must be a datetime with a time zone, not %r. Use django.utils.timezone.now() or make_aware().")
            % (until,)
        )
    name = settings.declared(queue)
    with transaction.atomic(using=settings.database):
        before = _standing(name)
        Queue.objects.using(settings.database).update_or_create(
            name=name, defaults={"paused_at": Now(), "resume_at": until}
        )
        audit(actor, "pause", "queue", name, before=before, after={"paused": True, "until": until and str(until)})


def resume(queue: str, *, actor: Actor | None = None) -> None:
    """Claim from this queue again. Raises UnknownQueue."""
    settings = get_settings()
    name = settings.declared(queue)
    with transaction.atomic(using=settings.database):
        before = _standing(name)
        Queue.objects.using(settings.database).filter(name=name).update(paused_at=None, resume_at=None)
        audit(actor, "resume", "queue", name, before=before, after={"paused": False})
        wake_after_commit(jobs_connection(), name)


def _standing(name: str) -> dict[str, Any]:
    row = Queue.objects.using(get_settings().database).select_for_update().filter(name=name).first()
    if row is None or row.paused_at is None:
        return {"paused": False}
    return {"paused": True, "until": row.resume_at and str(row.resume_at)}
