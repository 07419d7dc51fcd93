"""The worker processes, living and lately gone."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from django_jobs import clock
from django_jobs.models import SEEN_WITHIN, Worker

from .base import JobsAdmin

SHOWN = 200
LATELY = timedelta(days=1)


class WorkerAdmin(JobsAdmin):
    def list_page(self, request: HttpRequest) -> HttpResponse:
        now = clock.now()
        lately = Worker.objects.filter(
            Q(stopped_at=None) | Q(stopped_at__gte=now - LATELY), last_seen_at__gte=now - LATELY
        )
        workers = list(lately.order_by("-last_seen_at", "id")[:SHOWN])
        rows = [(worker, standing(worker, now), groups_of(worker)) for worker in workers]
        alive = sum(state == "alive" for _worker, state, _groups in rows)
        return self.show(request, "workers", _("Workers"), workers=rows, alive=alive, live=5)


def standing(worker: Worker, now: datetime) -> str:
    """alive, stopped (it said so) or lost (silent)."""
    if worker.stopped_at is not None:
        return "stopped"
    return "alive" if worker.last_seen_at >= now - SEEN_WITHIN else "lost"


def groups_of(worker: Worker) -> list[tuple[str, int]]:
    """The queues that share slots, and how many slots."""
    groups = worker.queues if isinstance(worker.queues, list) else []
    return [
        (", ".join(map(str, group.get("queues", ()))), group.get("slots", 0))
        for group in groups
        if isinstance(group, dict)
    ]
