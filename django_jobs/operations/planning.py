"""Planning: when a schedule fires next, or why it cannot. A schedule whose definition has changed starts from now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django_jobs.conf import get_settings
from django_jobs.logs import get_logger
from django_jobs.models import Schedule
from django_jobs.models.schedule import Definition

from .schedule_spec import timing_fault
from .timetable import Timetable

logger = get_logger("django_jobs.maintenance")


def plan_from_now(schedules: Iterable[Schedule], now: datetime) -> None:
    """Plan the next slot after ``now``, the database's time, and forget all before. The caller has locked the rows."""
    plans: dict[tuple[datetime | None, str], list[str]] = defaultdict(list)
    for schedule in schedules:
        plans[_next_or_fault(schedule, now)].append(schedule.pk)
    for (next_run_at, fault), names in plans.items():
        if fault:
            logger.error("Broken, and not fired until they are mended: schedules %s: %s", ", ".join(names), fault)
        Schedule.objects.using(get_settings().database).filter(pk__in=names).update(
            next_run_at=next_run_at, broken=fault, planned=Definition(), active_since=now
        )


def _next_or_fault(schedule: Schedule, now: datetime) -> tuple[datetime | None, str]:
    if fault := timing_fault(schedule.cron, schedule.every, schedule.timezone):
        return None, fault
    if not schedule.enabled:
        return None, ""
    try:
        return Timetable.of(schedule).first_after(now), ""
    except Exception as error:
        logger.exception("The next slot of schedule %r could not be found.", schedule.pk)
        return None, f"{type(error).__name__}: {error}"
