"""Shows this process to people: its row in ``workers`` and its counts of ended runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from django.db.models.functions import Now

from django_jobs import clock
from django_jobs.engines.protocol import Session
from django_jobs.models import JobCount, Worker

from .counts import Count, Counts, Key
from .database import brief_transaction, connection_for_a_turn
from .service import Service


class Reporter(Service):
    """``running`` tells how many jobs the process holds now.

    With nothing new to tell it shows itself less often. A minute's counts are written as they stand, again and
    again: nothing is added up in the database, so a report that is repeated changes nothing.
    """

    name = "reporter"
    pause = timedelta(seconds=10)
    rest = timedelta(seconds=30)

    def __init__(self, row: Worker, alias: str, running: Callable[[], int], counts: Counts) -> None:
        self._row = row
        self._alias = alias
        self._running = running
        self._counts = counts
        self._shown = -1
        self._shown_at = 0.0

    def run_once(self, session: Session) -> int:
        return self._report() if self._has_news() else 0

    def _has_news(self) -> bool:
        shown_lately = clock.monotonic() - self._shown_at < self.rest.total_seconds()
        return not shown_lately or self._running() != self._shown or bool(self._counts.unwritten())

    def close(self, session: Session) -> None:
        self._report(stopped_at=Now())

    def _report(self, **more: object) -> int:
        running = self._running()
        with connection_for_a_turn(self._alias), brief_transaction(self._alias):
            self._show_worker(running, **more)
            counts = self._counts.unwritten()
            write_counts(self._alias, self._row.pk, counts)
        self._shown, self._shown_at = running, clock.monotonic()
        self._counts.note_written(counts)
        return len(counts)

    def _show_worker(self, running: int, **more: object) -> None:
        """A row that somebody has deleted is made again."""
        workers = Worker.objects.using(self._alias)
        shown = {"running": running, "last_seen_at": Now(), **more}
        if not workers.filter(pk=self._row.pk).update(**shown):
            workers.bulk_create([self._row], ignore_conflicts=True)
            workers.filter(pk=self._row.pk).update(**shown)


def write_counts(alias: str, process: str, counts: Mapping[Key, Count]) -> None:
    """``process``: the one that counted, by a name that no other process ever has."""
    JobCount.objects.using(alias).bulk_create(
        [_count_row(process, key, count) for key, count in counts.items()],
        update_conflicts=True,
        unique_fields=["minute", "process", "queue", "type", "outcome"],
        update_fields=["count", "total_ms", "histogram"],
    )


def _count_row(process: str, key: Key, count: Count) -> JobCount:
    minute, queue, type_name, outcome = key
    return JobCount(
        minute=minute,
        process=process,
        queue=queue,
        type=type_name,
        outcome=outcome,
        count=count.count,
        total_ms=count.total_ms,
        histogram=count.histogram,
    )
