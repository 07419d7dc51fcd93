"""The page of one job, wherever the job is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from django_jobs.conf import get_settings
from django_jobs.models import DeadJob, Job, JobHistory
from django_jobs.operations.lookup import public_status
from django_jobs.operations.payload_view import shown_payload

from .base import JobsAdmin
from .dead_jobs import REASONS
from .explanation import explanation
from .rights import rights_of
from .timeline import timeline

Row = Job | DeadJob | JobHistory
SHOWN_CHARACTERS = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """``place``: live, dead or finished."""

    place: str
    row: Row

    @property
    def status(self) -> str:
        match self.row:
            case DeadJob():
                return "dead"
            case JobHistory():
                return self.row.status
            case Job():
                return public_status(self.row.status, self.row.last_error)


def job_page(admin: JobsAdmin, request: HttpRequest, id: UUID) -> HttpResponse:
    return render_job(admin, request, find(id))


def render_job(admin: JobsAdmin, request: HttpRequest, found: Found, **more: Any) -> HttpResponse:
    row = found.row
    events = timeline(row)[::-1]
    context = {
        "found": found,
        "job": row,
        "job_id": row.job_id if isinstance(row, JobHistory) else row.pk,
        "events": events,
        "opened": next((n for n, event in enumerate(events) if event.traceback), None),
        "facts": context_of(row),
        "rights": rights_of(request),
        "reason": dict(REASONS).get(getattr(row, "reason", ""), ""),
        "live": 0 if found.place == "finished" else 5,
        "explanation": explanation(row.pk) if found.place == "live" else [],
        **_data(row),
    }
    return admin.show(request, "job", row.type, **(context | more))


def _data(row: Row) -> dict[str, Any]:
    """What the job works on, or what came of it."""
    if isinstance(row, JobHistory):
        return {"payload": None, "result": as_text(row.result), "metrics": as_text(row.metrics)}
    shown = shown_payload(row.type, row.payload)
    return {"payload": as_text(shown), "hidden": shown != row.payload}


def find(job_id: UUID) -> Found:
    """Read from the database that is written to: whoever has just acted sees what came of it. Raises Http404."""
    # Twice, because a dead job that is retried between the first two looks passes us by.
    for _n in range(2):
        for place, look in LOOKS.items():
            if (row := look(job_id, get_settings().database)) is not None:
                return Found(place=place, row=row)
    raise Http404(_("No job has the id %s: its history may be past its retention.") % job_id)


def _live(job_id: UUID, alias: str) -> Job | None:
    return Job.objects.using(alias).filter(pk=job_id).first()


def _dead(job_id: UUID, alias: str) -> DeadJob | None:
    return DeadJob.objects.using(alias).filter(pk=job_id).first()


def _finished(job_id: UUID, alias: str) -> JobHistory | None:
    return JobHistory.objects.using(alias).filter(job_id=job_id).order_by("-id").first()


LOOKS: dict[str, Callable[[UUID, str], Row | None]] = {"live": _live, "dead": _dead, "finished": _finished}


def context_of(row: Row) -> list[tuple[str, str]]:
    """What travelled with the job besides its payload."""
    context = getattr(row, "context", None)
    return sorted((str(name), str(value)) for name, value in context.items()) if isinstance(context, dict) else []


def as_text(value: Any) -> str:
    """JSON for people, at most 64 Ki characters of it."""
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return text[:SHOWN_CHARACTERS] + "\n… " + _("%s more characters") % (len(text) - SHOWN_CHARACTERS)
