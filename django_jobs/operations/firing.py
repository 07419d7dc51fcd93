"""Firing: each due slot of each schedule enqueues at most one job, whoever fires and whatever dies.

One transaction locks the schedules' rows, enqueues, records the slots and moves ``next_run_at``: no statement of it
counts without the others. Rows that another scheduler has locked are passed over. Every decision is made by the
database's clock. A schedule that fails is set aside and does not hold up the others of its batch.
"""

from __future__ import annotations

from django.db import Error, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.logs import get_logger
from django_jobs.models import Schedule
from django_jobs.models.schedule import Definition
from django_jobs.registry import registry

from .planning import plan_from_now
from .schedule_spec import SPEC_FIELDS
from .slots import fire_slots
from .transactions import jobs_connection

logger = get_logger("django_jobs.maintenance")

BATCH = 250
SET_ASIDE_SECONDS = 60.0


class SetAside:
    """Schedules this process cannot fire, with the reason, for a minute each. Another build may know better."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, str]] = {}

    def add(self, name: str, reason: str) -> None:
        logger.error("Schedule %r cannot be fired here: %s", name, reason)
        self._entries[name] = (clock.monotonic() + SET_ASIDE_SECONDS, reason)

    def reasons(self) -> dict[str, str]:
        now = clock.monotonic()
        self._entries = {name: entry for name, entry in self._entries.items() if entry[0] > now}
        return {name: reason for name, (_, reason) in self._entries.items()}


def next_look(aside: SetAside) -> float | None:
    """Seconds until a schedule wants a look; zero or less when one is due, None when none will be. One query."""
    soonest = _fireable(aside).order_by("look_at").annotate(now=Now()).values_list("look_at", "now").first()
    return None if soonest is None else (soonest[0] - soonest[1]).total_seconds()


def fire_due(aside: SetAside, *, limit: int = BATCH) -> int:
    """Fire up to ``limit`` schedules that are due, and plan those that have changed. Returns how many it dealt with.

    Raises what the database says when it cannot be reached.
    """
    names: list[str] = []
    try:
        _fire(_due(aside).order_by("look_at")[:limit], aside, names)
    except Exception as error:
        if not names or _is_unreachable(error):
            raise
        logger.warning("%d schedules could not be fired together, so each is fired alone: %s", len(names), error)
        for name in names:
            _fire_alone(name, aside)
    return len(names)


def _fire_alone(name: str, aside: SetAside) -> None:
    try:
        _fire(_due(aside).filter(pk=name), aside, [])
    except Exception as error:
        if _is_unreachable(error):
            raise
        aside.add(name, f"{type(error).__name__}: {error}")


def _is_unreachable(error: Exception) -> bool:
    return isinstance(error, Error) and not jobs_connection().is_usable()


def _fire(due: QuerySet[Schedule], aside: SetAside, names: list[str]) -> None:
    """``names`` receives those whose rows were locked."""
    with transaction.atomic(using=get_settings().database):
        locked = due.select_for_update(skip_locked=True).only("next_run_at", *SPEC_FIELDS)
        schedules = list(locked.annotate(now=Now(), changed=~Q(planned=Definition())))
        if not schedules:
            return
        names += [schedule.pk for schedule in schedules]
        now = schedules[0].now
        changed = [schedule for schedule in schedules if schedule.changed]
        plan_from_now(changed, now)
        fire_slots([schedule for schedule in schedules if not schedule.changed], now, aside.add)


def _due(aside: SetAside) -> QuerySet[Schedule]:
    return _fireable(aside).filter(look_at__lte=Now())


def _fireable(aside: SetAside) -> QuerySet[Schedule]:
    """Those of types this build knows: another build may fire the rest."""
    schedules = Schedule.objects.using(get_settings().database).filter(look_at__isnull=False, type__in=registry.names())
    return schedules.exclude(pk__in=names) if (names := list(aside.reasons())) else schedules
