"""What an operator does with alerts: look at them, acknowledge them, call them resolved."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.exceptions import AlertNotFound, InvalidOption
from django_jobs.models import Alert, AlertState

from .audit import Actor, audit


def alerts(*, state: str | None = None) -> QuerySet[Alert]:
    """Alerts, the newest first: live ones, or those in ``state`` (open, acknowledged or resolved). Raises
    InvalidOption.
    """
    found = Alert.objects.using(get_settings().database).order_by("-opened_at", "-pk")
    if state is None:
        return found.exclude(state=AlertState.RESOLVED)
    if state not in AlertState.values:
        raise InvalidOption(f"{state!r} is no state of an alert: give one of {', '.join(AlertState.values)}, or none.")
    return found.filter(state=state)


def acknowledge_alert(id: UUID | str, *, actor: Actor | None = None) -> bool:
    """Somebody is looking after it. False if it was not open. Raises AlertNotFound.

    Nobody is told again about it until it has been resolved; it is resolved by itself once its condition has ended.
    """
    changes = {"acknowledged_at": Now(), "acknowledged_by": _name(actor)}
    return _move(id, actor, "acknowledge", (AlertState.OPEN,), AlertState.ACKNOWLEDGED, changes)


def resolve_alert(id: UUID | str, *, actor: Actor | None = None) -> bool:
    """Call it resolved. False if it was already. Raises AlertNotFound.

    If its condition still holds, the next look opens a new one. Whoever was told of it is told of its end.
    """
    changes = {"resolved_at": Now(), "resolved_by": _name(actor), "notify_at": Now()}
    return _move(id, actor, "resolve", (AlertState.OPEN, AlertState.ACKNOWLEDGED), AlertState.RESOLVED, changes)


def _move(
    id: UUID | str,
    actor: Actor | None,
    action: str,
    before: tuple[AlertState, ...],
    after: AlertState,
    changes: dict[str, Any],
) -> bool:
    with transaction.atomic(using=get_settings().database):
        row = _found(id).select_for_update().first()
        if row is None or row.state not in before:
            return False
        _found(id).update(state=after, **changes)
        about = {"condition": row.condition, "subject": row.subject, "state": row.state}
        audit(actor, action, "alert", row.pk, before=about, after={"state": after.value})
    return True


def _name(actor: Actor | None) -> str:
    return actor.name if actor else ""


def _found(id: UUID | str) -> QuerySet[Alert]:
    found = Alert.objects.using(get_settings().database)
    try:
        found = found.filter(pk=id if isinstance(id, UUID) else UUID(id))
    except (ValueError, AttributeError, TypeError):
        raise AlertNotFound(f"{id!r} is no alert's id: it takes a UUID, as alerts() shows it.") from None
    if not found.exists():
        raise AlertNotFound(f"There is no alert {id}: it was removed long after it was resolved, or never was.")
    return found
