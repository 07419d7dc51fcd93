"""How full each queue is, and how long its oldest ready job has waited, at a cost that does not grow with the queue.

Counts stop at ``COUNTED``. The oldest job of a queue is the first in line of one of its priorities; those are found one
after the other in the claim's index, the highest ``PRIORITIES`` of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connections, router
from django.utils.dateparse import parse_datetime

from django_jobs.models import Job

from .listing import COUNTED

PRIORITIES = 20

_READY = "queue = %(queue_{n})s AND status = 'pending' AND lost_runs = 0"
_FIGURES = """
SELECT %(queue_{n})s,
       (SELECT count(*) FROM (SELECT 1 FROM django_jobs_job WHERE {ready} LIMIT {most}) AS ready)
       + (SELECT count(*) FROM (SELECT 1 FROM django_jobs_job WHERE queue = %(queue_{n})s AND status = 'pending'
                                   AND lost_runs > 0 LIMIT {most}) AS suspects),
       (SELECT count(*) FROM (SELECT 1 FROM django_jobs_job
                               WHERE queue = %(queue_{n})s AND status = 'scheduled' LIMIT {most}) AS scheduled),
       (SELECT count(*) FROM (SELECT 1 FROM django_jobs_job
                               WHERE queue = %(queue_{n})s AND status = 'processing' LIMIT {most}) AS running),
       (WITH RECURSIVE line (priority) AS (
            SELECT (SELECT priority FROM django_jobs_job WHERE {ready} ORDER BY priority DESC LIMIT 1)
             UNION ALL
            SELECT (SELECT priority FROM django_jobs_job WHERE {ready} AND priority < line.priority
                     ORDER BY priority DESC LIMIT 1)
              FROM line WHERE line.priority IS NOT NULL)
        SELECT min((SELECT run_at FROM django_jobs_job WHERE {ready} AND priority = levels.priority
                     ORDER BY ready_xid, ready_seq LIMIT 1))
          FROM (SELECT priority FROM line LIMIT {priorities}) AS levels)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """Counts go to COUNTED; one more means more. ``oldest``: None if nothing is ready."""

    queue: str
    ready: int
    scheduled: int
    running: int
    oldest: datetime | None


def queue_figures(queues: Sequence[str]) -> list[QueueFigures]:
    """In one statement, in the order of ``queues``."""
    parts = [_part(n) for n in range(len(queues))]
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), {f"queue_{n}": queue for n, queue in enumerate(queues)})
        found = {row[0]: row for row in cursor.fetchall()}
    return [_figures(*found[queue]) for queue in queues]


def _part(n: int) -> str:
    return _FIGURES.format(n=n, ready=_READY.format(n=n), most=COUNTED + 1, priorities=PRIORITIES)


def _figures(queue: str, ready: int, scheduled: int, running: int, oldest: Any) -> QueueFigures:
    return QueueFigures(queue=queue, ready=ready, scheduled=scheduled, running=running, oldest=_instant(oldest))


def _instant(value: Any) -> datetime | None:
    """SQLite gives text, in UTC."""
    instant = parse_datetime(value) if isinstance(value, str) else value
    return instant.replace(tzinfo=UTC) if instant is not None and instant.tzinfo is None else instant
