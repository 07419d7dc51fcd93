"""A job's life as far as its row tells it, oldest first. Takes any row: every part of it may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobs.models import DeadJob, Job, JobHistory, JobStatus

SHOWN_ERRORS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``kind``: enqueued, failed, gap, running, waiting, cancelling, or the status a job ended with."""

    kind: str
    title: str
    at: datetime | None = None
    worker: str = ""
    duration_ms: int | None = None
    error_type: str = ""
    message: str = ""
    traceback: str = ""


def timeline(row: Job | DeadJob | JobHistory) -> list[Event]:
    return [*_beginning(row), *_attempts(row.errors), *_present(row)]


def _beginning(row: Job | DeadJob | JobHistory) -> Iterator[Event]:
    at = row.enqueued_at if isinstance(row, JobHistory) else row.created_at
    context = getattr(row, "context", None)
    by = context.get("enqueued_by", "") if isinstance(context, dict) else ""
    yield Event(kind="enqueued", title=_("Enqueued by %s") % by if by else _("Enqueued"), at=at)


def _attempts(errors: Any) -> Iterator[Event]:
    entries = [entry for entry in errors if isinstance(entry, dict)] if isinstance(errors, list) else []
    before = 0
    for entry in _shown(entries):
        attempt = entry.get("attempt")
        if isinstance(attempt, int):
            if attempt > before + 1:
                yield Event(kind="gap", title=_gap(before + 1, attempt - 1))
            before = attempt
        yield _failed(entry, attempt)


def _shown(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    half = SHOWN_ERRORS // 2
    return entries if len(entries) <= SHOWN_ERRORS else entries[:half] + entries[-half:]


def _gap(first: int, last: int) -> str:
    if first == last:
        return _("No record of attempt %s") % first
    return _("No record of attempts %(first)s to %(last)s") % {"first": first, "last": last}


def _failed(entry: dict[str, Any], attempt: Any) -> Event:
    duration = entry.get("duration_ms")
    return Event(
        kind="failed",
        title=_("Attempt %s failed") % attempt if attempt else _("An attempt failed"),
        at=_instant(entry.get("at")),
        worker=str(entry.get("worker") or ""),
        duration_ms=duration if isinstance(duration, int) else None,
        error_type=str(entry.get("type") or ""),
        message=str(entry.get("message") or ""),
        traceback=str(entry.get("traceback") or ""),
    )


def _instant(text: Any) -> datetime | None:
    try:
        return parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _present(row: Job | DeadJob | JobHistory) -> Iterator[Event]:
    match row:
        case JobHistory():
            yield _ended(row)
        case DeadJob():
            yield Event(kind="dead", title=_dead_title(row.attempts), at=row.failed_at)
        case _ if row.status == JobStatus.PROCESSING:
            yield Event(kind="running", title=_("Attempt %s runs") % row.attempts, worker=row.locked_by)
            if row.cancel_requested_at:
                yield Event(kind="cancelling", title=_("Asked to cancel"), at=row.cancel_requested_at)
        case _:
            yield Event(kind="waiting", title=_("Attempt %s is to come") % (row.attempts + 1), at=row.run_at)


def _dead_title(attempts: int) -> str:
    return ngettext("Dead after %s attempt", "Dead after %s attempts", attempts) % attempts


def _ended(row: JobHistory) -> Event:
    titles = {
        "succeeded": _("Attempt %s succeeded") % row.attempts,
        "cancelled": _("Cancelled"),
        "discarded": _("Discarded"),
    }
    return Event(
        kind=row.status,
        title=titles.get(row.status, row.status),
        at=row.finished_at,
        worker=row.worker,
        duration_ms=row.duration_ms,
    )
