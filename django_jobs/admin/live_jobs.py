"""The list of unfinished jobs."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

from django_jobs.models import Job, JobStatus

from .base import JobsAdmin
from .filters import Filters
from .links import job_url
from .listing import Listing, Rows
from .search import as_job_id, searched

RETRYING = "failed_retrying"
STATES = (
    (JobStatus.PENDING.value, _("pending")),
    (JobStatus.PROCESSING.value, _("processing")),
    (JobStatus.SCHEDULED.value, _("scheduled")),
    (RETRYING, _("waiting for a retry")),
)
COLUMNS = (
    "id", "type", "queue", "tenant", "status", "priority", "run_at", "created_at", "attempts", "max_attempts",
    "last_error", "locked_by", "progress", "cancel_requested_at",
)  # fmt: skip


def live_jobs(admin: JobsAdmin, request: HttpRequest) -> HttpResponse:
    filters = Filters.of(request)
    text = filters.value("q")
    if as_job_id(text) is not None:
        return redirect(job_url(admin.admin_site, text))
    state = filters.choose("status", _("Status"), STATES)
    wanted = _in_state(state) & filters.columns()
    rows = _take(wanted, text, state, filters.value("before"))
    return admin.show(request, "jobs", _("Jobs"), rows=rows, filters=filters, search=text, live=5)


def _take(wanted: Q, text: str, state: str, before: str) -> Rows:
    # An index of its own holds those that run: they are few, and may be the oldest of all.
    found, indexed = searched(text, "id") if text else (Q(), state == JobStatus.PROCESSING)
    return Listing().take(_jobs(), wanted & found, indexed=indexed, before=before)


def _jobs() -> QuerySet[Job]:
    return Job.objects.only(*COLUMNS)


def _in_state(state: str) -> Q:
    if state == RETRYING:
        return ~Q(status=JobStatus.PROCESSING) & ~Q(last_error="")
    return Q(status=state) if state else Q()
