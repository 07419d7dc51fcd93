"""The list of dead jobs, and what is done with those that are ticked or match."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _

from django_jobs import clock
from django_jobs.models import DeadJob
from django_jobs.operations.dead_filter import DeadFilter
from django_jobs.outcomes import DeadReason

from .base import JobsAdmin
from .bulk import preview, start
from .filters import Filters
from .groups import group_page, groups_page
from .links import job_url
from .listing import Listing
from .rights import rights_of
from .search import as_job_id, jobs_with_key

REASONS = (
    (DeadReason.EXHAUSTED.value, _("attempts exhausted")),
    (DeadReason.BURIED_BY_HANDLER.value, _("buried by its handler")),
    (DeadReason.WORKER_LOST.value, _("worker lost")),
    (DeadReason.TIMEOUT.value, _("timed out")),
    (DeadReason.NO_HANDLER.value, _("no handler")),
    (DeadReason.BAD_PAYLOAD.value, _("payload does not fit")),
    (DeadReason.UNRECORDABLE.value, _("outcome not recordable")),
)
COLUMNS = (
    "id", "type", "queue", "tenant", "reason", "failed_at", "attempts", "max_attempts", "error_type",
    "error_summary", "fingerprint",
)  # fmt: skip
LISTING = Listing(newest_first=("failed_at", "id"))


def dead_jobs(admin: JobsAdmin, request: HttpRequest) -> HttpResponse:
    filters = Filters.of(request)
    text = filters.value("q")
    if as_job_id(text) is not None:
        return redirect(job_url(admin.admin_site, text))
    wanted = dead_filter(filters, text)
    dead = DeadJob.objects.only(*COLUMNS)
    rows = LISTING.take(dead, wanted.query(), indexed=_is_indexed(wanted), before=filters.value("before"))
    return admin.show(
        request,
        "dead_jobs",
        _("Dead jobs"),
        rows=rows,
        filters=filters,
        wanted=wanted,
        filter_json=json.dumps(wanted.as_json()),
        search=text,
        rights=rights_of(request),
        reasons=dict(REASONS),
    )


def dead_filter(filters: Filters, text: str) -> DeadFilter:
    """What the form and the search box describe; also adds the form's fields."""
    terms = {
        "reason": filters.choose("reason", _("Reason"), REASONS),
        "queue": filters.queue(),
        "type": filters.type(),
        "tenant": filters.tenant(),
        "error": filters.write("error", _("Error contains")),
        "fingerprint": filters.write("fingerprint", _("Fingerprint")),
    }
    age = filters.age("all")
    given: dict[str, Any] = {name: value for name, value in terms.items() if value}
    if text:
        found = tuple(jobs_with_key(text))
        given |= {"ids": found} if found else {"tenant": text}
    return DeadFilter(failed_from=None if age is None else clock.now() - age, **given)


def _is_indexed(wanted: DeadFilter) -> bool:
    """Does an index give what is wanted, in the order of the list?"""
    by_group = bool(wanted.type and wanted.fingerprint)
    rest = replace(wanted, failed_from=None, failed_before=None)
    if by_group:
        rest = replace(rest, type=None, fingerprint=None)
    return wanted.ids is not None or rest.is_empty


class DeadJobAdmin(JobsAdmin):
    def pages(self) -> list[URLPattern]:
        return [
            *super().pages(),
            self.page("groups/", self.groups, "groups"),
            self.page("group/", self.group, "group"),
            self.post("preview/", self.preview, "preview"),
            self.post("start/", self.start, "start"),
            self.page("<uuid:id>/", self.job, "change"),
        ]

    def list_page(self, request: HttpRequest) -> HttpResponse:
        return dead_jobs(self, request)

    def job(self, request: HttpRequest, id: UUID) -> HttpResponse:
        return redirect(job_url(self.admin_site, id))

    def groups(self, request: HttpRequest) -> HttpResponse:
        return groups_page(self, request)

    def group(self, request: HttpRequest) -> HttpResponse:
        return group_page(self, request)

    def preview(self, request: HttpRequest) -> HttpResponse:
        return preview(self, request)

    def start(self, request: HttpRequest) -> HttpResponse:
        return start(self, request)
