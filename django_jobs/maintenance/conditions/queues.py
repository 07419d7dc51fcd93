"""Queues: how long the oldest job has been waiting, whether a queue grows, whether anybody serves it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import mean

from django.db.models import Q

from django_jobs.models import Alert, AlertState, Job, JobStatus, Queue, Severity, Worker
from django_jobs.models.queue import paused
from django_jobs.models.worker import alive, queues_in

from .finding import Finding, View, in_words

UNSERVED_FOR = timedelta(minutes=1)

WINDOW = timedelta(minutes=15)
FEWEST_SAMPLES = 6
SMALLEST_RISE = 500
RISE = 1.5
COUNTED = 20_000

_PENDING = (Q(status=JobStatus.PENDING, lost_runs=0), Q(status=JobStatus.PENDING, lost_runs__gt=0))
_ORDER = ("queue", "-priority", "ready_xid", "ready_seq")

Head = tuple[str, int, datetime]
Sample = tuple[datetime, int]


def oldest_job(view: View) -> Iterator[Finding]:
    """A ready job has waited for longer than ALERT_OLDEST_AGE, in a queue that is not paused."""
    limit = view.settings.alert_oldest_age
    for queue, run_at in _oldest(view).items():
        if (age := view.now - run_at) > limit:
            yield Finding(
                subject=f"queue {queue}",
                summary=f"The oldest ready job of queue {queue} has waited for {in_words(age)}.",
                details={"waiting_since": run_at.isoformat()},
            )


def unserved_queue(view: View) -> Iterator[Finding]:
    """Jobs wait in a queue that no living worker serves."""
    served = _served(view)
    for queue, run_at in _oldest(view).items():
        if queue not in served and view.now - run_at > UNSERVED_FOR:
            yield Finding(
                subject=f"queue {queue}",
                summary=f"Jobs wait in queue {queue} and no worker serves it.",
                details={"waiting_since": run_at.isoformat(), "served": sorted(served)},
            )


class QueueTrend:
    """A queue has grown steadily: each third of the last quarter of an hour held more jobs than the one before.

    Its memory is this process's. A new leader begins with what the live alerts hold, so that an alert does not end and
    come again because the leader did. Counting ends at COUNTED; of a queue that is longer, ``oldest_job`` tells.
    """

    def __init__(self) -> None:
        self._samples: dict[str, list[Sample]] = {}
        self._looked_at: datetime | None = None

    def __call__(self, view: View) -> Iterator[Finding]:
        if self._looked_at is None or view.now - self._looked_at > WINDOW:
            self._samples = _remembered(view)
        self._looked_at = view.now
        depths = {queue: _depth(view, queue) for queue in _oldest(view)}
        for queue in sorted({*self._samples, *depths}):
            samples = self._note(queue, view.now, depths.get(queue, 0))
            if _rises([depth for _, depth in samples]):
                yield Finding(
                    subject=f"queue {queue}",
                    severity=Severity.WARNING,
                    summary=f"Queue {queue} grows: from {samples[0][1]} to {samples[-1][1]} ready jobs in "
                    f"{in_words(view.now - samples[0][0])}.",
                    details={"queue": queue, "depths": [[at.isoformat(), depth] for at, depth in samples]},
                )

    def _note(self, queue: str, now: datetime, depth: int) -> list[Sample]:
        recent = [(at, number) for at, number in self._samples.get(queue, ()) if at >= now - WINDOW]
        samples = [*recent, (now, depth)]
        self._samples[queue] = samples
        if not any(number for _, number in samples):
            del self._samples[queue]
        return samples


def _depth(view: View, queue: str) -> int:
    return Job.objects.using(view.alias).filter(_PENDING[0], queue=queue)[:COUNTED].count()


def _remembered(view: View) -> dict[str, list[Sample]]:
    live = Alert.objects.using(view.alias).filter(condition="queue_trend").exclude(state=AlertState.RESOLVED)
    return {
        details["queue"]: [(datetime.fromisoformat(at), depth) for at, depth in details["depths"]]
        for details in live.values_list("details", flat=True)
        if "queue" in details
    }


def _rises(depths: list[int]) -> bool:
    if len(depths) < FEWEST_SAMPLES:
        return False
    third = len(depths) // 3
    first, middle, last = (mean(part) for part in (depths[:third], depths[third:-third], depths[-third:]))
    return first < middle < last and last >= first * RISE and last - first >= SMALLEST_RISE


def _oldest(view: View) -> dict[str, datetime]:
    """Of each queue that is not paused, since when its oldest ready job waits, as far as the heads of its priorities
    tell.
    """
    oldest: dict[str, datetime] = {}
    for pending in _PENDING:
        for queue, _, run_at in _heads(view, pending):
            oldest[queue] = min(run_at, oldest.get(queue, run_at))
    for queue in Queue.objects.using(view.alias).filter(paused(view.now)).values_list("name", flat=True):
        oldest.pop(queue, None)
    return oldest


def _heads(view: View, pending: Q) -> Iterator[Head]:
    """The first ready job of each queue and priority, by hopping along the claim index: one descent each."""
    jobs = Job.objects.using(view.alias).filter(pending).order_by(*_ORDER).values_list("queue", "priority", "run_at")
    head = jobs.first()
    while head is not None:
        yield head
        queue, priority, _ = head
        head = jobs.filter(queue=queue, priority__lt=priority).first() or jobs.filter(queue__gt=queue).first()


def _served(view: View) -> set[str]:
    workers = Worker.objects.using(view.alias).filter(alive(view.now))
    return {queue for groups in workers.values_list("queues", flat=True) for queue in queues_in(groups)}
