"""Who leads the maintenance, for people. Nothing decides by it."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.engines.protocol import MAINTENANCE
from django_jobs.models import Leadership

# A leader that was killed is followed well within it.
LED_WITHIN = timedelta(minutes=1)
NOBODY_LEADS = (
    "Nobody leads the maintenance: schedules do not fire, delayed jobs and retries do not start, the jobs of dead "
    "workers stay where they are. Run a worker without --no-scheduler, or runjobscheduler."
)


def leader() -> str | None:
    """The process that leads, or led a moment ago. None: nobody has for LED_WITHIN."""
    rows = Leadership.objects.using(get_settings().database)
    led = rows.filter(name=MAINTENANCE, expires_at__gt=Now() - LED_WITHIN)
    return led.values_list("holder", flat=True).first()
