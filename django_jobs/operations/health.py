"""What the tables say about how the work is going. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, DurationField, F, Max, Q
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.models import Job, JobStatus, Queue, Worker
from django_jobs.models.queue import paused
from django_jobs.models.worker import alive

from .leadership import leader


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHealth:
    """``waiting``: jobs that could start now; ``oldest``: how long the first of them has waited, None for none."""

    queue: str
    waiting: int
    oldest: timedelta | None
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """``lost_leases``: runs whose process has not renewed in time and that nobody has rescued yet. ``leader``: of the
    maintenance, None for nobody.
    """

    queues: list[QueueHealth]
    lost_leases: int
    workers: int
    leader: str | None


def health() -> Health:
    """Raises DatabaseError if the jobs database does not answer."""
    alias = get_settings().database
    jobs = Job.objects.using(alias)
    lost = jobs.filter(status=JobStatus.PROCESSING, locked_until__lt=Now())
    workers = Worker.objects.using(alias).filter(alive(Now()))
    return Health(queues=_queues(alias), lost_leases=lost.count(), workers=workers.count(), leader=leader())


def _queues(alias: str) -> list[QueueHealth]:
    """Reads every job that waits."""
    ready = Q(status=JobStatus.PENDING) | Q(status=JobStatus.SCHEDULED, run_at__lte=Now())
    oldest = Max(Now() - F("run_at"), output_field=DurationField())
    found = Job.objects.using(alias).filter(ready).order_by().values_list("queue")
    counted = found.annotate(count=Count("pk"), oldest=oldest)
    waiting = {queue: (count, max(age, timedelta(0))) for queue, count, age in counted}
    not_claimed = set(Queue.objects.using(alias).filter(paused(Now())).values_list("name", flat=True))
    return [
        QueueHealth(queue=name, waiting=count, oldest=age, paused=name in not_claimed)
        for name in dict.fromkeys([*get_settings().queues, *sorted(waiting)])
        for count, age in [waiting.get(name, (0, None))]
    ]
