"""Marks schedules that no build fires as broken, with the reason, and heals those whose reason is gone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.exceptions import EnqueueError
from django_jobs.logs import get_logger
from django_jobs.models import Schedule
from django_jobs.models.schedule import Definition
from django_jobs.registry import registry

from .firing import SetAside
from .planning import plan_from_now
from .schedule_spec import timing_fault
from .slots import job_of

logger = get_logger("django_jobs.maintenance")

PATIENCE = timedelta(seconds=60)
BATCH = 500


def mend(aside: SetAside, *, only_heal: bool = False) -> int:
    """Returns how many schedules were marked or healed.

    Overdue for PATIENCE and out of reach for this build: another build would have fired it. One that heals goes on by
    its catch-up policy, as after a time without schedulers.
    """
    alias = get_settings().database
    reasons = aside.reasons()
    wanted = ~Q(broken="") if only_heal else ~Q(broken="") | _overdue(reasons)
    with transaction.atomic(using=alias):
        rows = Schedule.objects.using(alias).filter(wanted).order_by("pk")
        rows = rows.annotate(now=Now(), changed=~Q(planned=Definition()))
        schedules = rows.select_for_update(skip_locked=True)[:BATCH]
        return sum(_mend(schedule, reasons, only_heal=only_heal) for schedule in schedules)


def _overdue(reasons: Iterable[str]) -> Q:
    return Q(look_at__lt=Now() - PATIENCE) & (~Q(type__in=registry.names()) | Q(pk__in=list(reasons)))


def _mend(schedule: Schedule, reasons: dict[str, str], *, only_heal: bool) -> bool:
    fault = _fault(schedule) or reasons.get(schedule.pk, "")
    was_broken = schedule.broken
    if fault and only_heal:
        return False
    if schedule.changed or (not fault and schedule.next_run_at is None):  # type: ignore[attr-defined]
        plan_from_now([schedule], schedule.now)  # type: ignore[attr-defined]
    if fault == was_broken:
        return False
    Schedule.objects.using(get_settings().database).filter(pk=schedule.pk).update(broken=fault)
    if fault:
        logger.error("Schedule %r is broken, and not fired until it is mended: %s", schedule.pk, fault)
    else:
        logger.info("Schedule %r is mended.", schedule.pk)
    return True


def _fault(schedule: Schedule) -> str:
    """Why this build cannot fire it; empty if it can."""
    if fault := timing_fault(schedule.cron, schedule.every, schedule.timezone):
        return fault
    try:
        job_of(schedule)
    except EnqueueError as error:
        return str(error)
    return ""
