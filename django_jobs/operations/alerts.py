"""What an operator does with alerts: look at them, acknowledge them, call them resolved."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.exceptions import AlertNotFound, InvalidOption
from django_jobs.models import Alert, AlertState


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


def acknowledge_alert(id: UUID | str, *, by: str = "") -> bool:
    """Somebody is looking after it. False if it was not open. Raises AlertNotFound.

    Nobody is told again about it until it has been resolved; it is resolved by itself once its condition has ended.
    """
    open_ones = _found(id).filter(state=AlertState.OPEN)
    changes = {"state": AlertState.ACKNOWLEDGED, "acknowledged_at": Now(), "acknowledged_by": by[:200]}
    return bool(open_ones.update(**changes))


def resolve_alert(id: UUID | str, *, by: str = "") -> bool:
    """Call it resolved. False if it was already. Raises AlertNotFound.

    If its condition still holds, the next look opens a new one. Whoever was told of it is told of its end.
    """
    live = _found(id).exclude(state=AlertState.RESOLVED)
    changes = {"state": AlertState.RESOLVED, "resolved_at": Now(), "resolved_by": by[:200], "notify_at": Now()}
    return bool(live.update(**changes))


def _found(id: UUID | str) -> QuerySet[Alert]:
    found = Alert.objects.using(get_settings().database)
    try:
        found = found.filter(pk=id if isinstance(id, UUID) else UUID(id))
    except (ValueError, AttributeError, TypeError):
        raise AlertNotFound(f"{id!r} is no alert's id: it takes a UUID, as alerts() shows it.") from None
    if not found.exists():
        raise AlertNotFound(f"There is no alert {id}: it was removed long after it was resolved, or never was.")
    return found
