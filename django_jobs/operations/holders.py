"""Who holds leases, and when each was last seen. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.models import SEEN_WITHIN, Job, JobStatus, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """``seen``: seconds since it last showed itself, None if it never did. ``lively``: it may well be running."""

    worker: str
    host: str
    jobs: int
    seen: float | None
    lively: bool


def holders() -> Iterator[Holder]:
    """By name."""
    alias = get_settings().database
    leased = Job.objects.using(alias).filter(status=JobStatus.PROCESSING).order_by("locked_by")
    counts = dict(leased.values_list("locked_by").annotate(jobs=Count("pk")))
    since = ExpressionWrapper(Now() - F("last_seen_at"), output_field=DurationField())
    rows = Worker.objects.using(alias).filter(pk__in=list(counts)).annotate(since=since)
    workers = {worker.pk: worker for worker in rows}
    for name, jobs in counts.items():
        worker = workers.get(name)
        yield Holder(
            worker=name,
            host=worker.host if worker else "",
            jobs=jobs,
            seen=worker.since.total_seconds() if worker else None,
            lively=worker is not None and worker.stopped_at is None and worker.since < SEEN_WITHIN,
        )
