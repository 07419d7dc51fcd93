"""The first page: is all well, and if not, where to look."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from django_jobs.conf import get_settings
from django_jobs.models import Alert, AlertState
from django_jobs.operations.dead_groups import dead_count, dead_groups, new_group_count
from django_jobs.operations.leadership import leader

from .base import JobsAdmin
from .listing import COUNTED
from .queue_rows import QueueRow, living_workers, queue_rows
from .throughput import throughput

SHOWN_GROUPS = 5
SHOWN_ALERTS = 10


def overview(admin: JobsAdmin, request: HttpRequest) -> HttpResponse:
    ended = throughput(get_settings().queues)
    workers = living_workers()
    queues = queue_rows(ended, workers)
    groups = dead_groups(order="last_seen", limit=SHOWN_GROUPS)
    live_alerts = Alert.objects.exclude(state=AlertState.RESOLVED)
    return admin.show(
        request,
        "overview",
        _("Overview"),
        ended=ended,
        queues=queues,
        workers=workers,
        leader=leader(),
        running=sum(worker.running for worker in workers),
        ready=_total(queues),
        scheduled=min(sum(row.figures.scheduled for row in queues), COUNTED + 1),
        oldest=min((row.figures.oldest for row in queues if row.figures.oldest), default=None),
        groups=groups.groups,
        new_groups=new_group_count(),
        dead=dead_count(),
        alerts=list(live_alerts.order_by("-id")[:SHOWN_ALERTS]),
        alert_count=live_alerts.order_by()[: COUNTED + 1].count(),
        current="job_overview",
        live=5,
    )


def _total(queues: list[QueueRow]) -> int:
    """Beyond COUNTED as soon as one queue is."""
    return sum(row.figures.ready for row in queues)
