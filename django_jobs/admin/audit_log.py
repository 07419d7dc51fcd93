"""What people did, newest first."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch
from django.utils.translation import gettext_lazy as _

from django_jobs.labels import SOURCES, TARGET_KINDS
from django_jobs.models import AuditEntry

from .base import JobsAdmin
from .filters import Filters, exactly, younger_ids
from .links import page_url
from .listing import Listing

PAGES = {"job": "job_change", "bulk_operation": "bulkoperation_change"}


class AuditEntryAdmin(JobsAdmin):
    def list_page(self, request: HttpRequest) -> HttpResponse:
        filters = Filters.of(request)
        target = filters.choose("target_kind", _("On"), TARGET_KINDS.items())
        target_id = filters.write("target_id", _("Which"))
        wanted = exactly(
            actor=filters.write("actor", _("Who")),
            action=filters.write("action", _("What")),
            source=filters.choose("source", _("By"), SOURCES.items()),
            target_kind=target,
            target_id=target_id,
        )
        age = filters.age("all")
        rows = Listing().take(
            AuditEntry.objects.filter(younger_ids(age)),
            wanted,
            indexed=bool(target and target_id),
            before=filters.value("before"),
        )
        return self.show(request, "audit", _("Audit"), rows=rows, entries=self._entries(rows.rows), filters=filters)

    def _entries(self, rows: Iterable[AuditEntry]) -> list[tuple[AuditEntry, str]]:
        return [(entry, self._link(entry)) for entry in rows]

    def _link(self, entry: AuditEntry) -> str:
        page = PAGES.get(entry.target_kind)
        if page is None or not entry.target_id:
            return ""
        try:
            return page_url(self.admin_site, page, entry.target_id)
        except NoReverseMatch:
            return ""
