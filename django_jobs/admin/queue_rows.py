"""What is known of each declared queue, for the overview and the queues' page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.models import Queue, Worker
from django_jobs.models.queue import paused
from django_jobs.models.worker import alive, queues_in

from .queue_figures import QueueFigures, queue_figures
from .throughput import MINUTES, Throughput


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """``resume_at``: None while it is not paused, or paused without an end. ``served_by``: living workers."""

    figures: QueueFigures
    paused_at: datetime | None
    resume_at: datetime | None
    served_by: int
    ended: list[int]

    @property
    def name(self) -> str:
        return self.figures.queue


def living_workers() -> list[Worker]:
    living = Worker.objects.filter(alive(clock.now()))
    return list(living.order_by("-started_at", "id")[:1000])


def queue_rows(ended: Throughput, workers: list[Worker]) -> list[QueueRow]:
    names = get_settings().queues
    pauses = {row.name: row for row in Queue.objects.filter(paused(clock.now()), name__in=names)}
    return [_row(figures, pauses.get(figures.queue), ended, workers) for figures in queue_figures(names)]


def _row(figures: QueueFigures, pause: Queue | None, ended: Throughput, workers: list[Worker]) -> QueueRow:
    return QueueRow(
        figures=figures,
        paused_at=pause.paused_at if pause else None,
        resume_at=pause.resume_at if pause else None,
        served_by=sum(figures.queue in queues_in(worker.queues) for worker in workers),
        ended=ended.per_queue.get(figures.queue, [0] * MINUTES),
    )
