"""The list of finished jobs."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _

from django_jobs.labels import STATES
from django_jobs.models import FinalStatus, JobHistory

from .base import JobsAdmin
from .filters import Filters, exactly, younger_ids
from .links import job_url
from .listing import Listing
from .search import searched

OUTCOMES = [(status, STATES[status]) for status in FinalStatus.values]
COLUMNS = (
    "id", "job_id", "type", "queue", "tenant", "status", "attempts", "enqueued_at", "finished_at", "duration_ms",
    "worker",
)  # fmt: skip


class JobHistoryAdmin(JobsAdmin):
    def pages(self) -> list[URLPattern]:
        return [*super().pages(), self.page("<uuid:id>/", self.job_of, "change")]

    def list_page(self, request: HttpRequest) -> HttpResponse:
        filters = Filters.of(request)
        text = filters.value("q")
        found, indexed = searched(text, "job_id") if text else (Q(), False)
        status = filters.choose("status", _("Outcome"), OUTCOMES)
        wanted = exactly(status=status) & filters.columns()
        age = filters.age("all" if text else "24h")
        rows = Listing().take(
            JobHistory.objects.filter(younger_ids(age)).only(*COLUMNS),
            wanted & found,
            indexed=indexed,
            before=filters.value("before"),
        )
        return self.show(request, "history", _("History"), rows=rows, filters=filters, search=text, live=5)

    def job_of(self, request: HttpRequest, id: UUID) -> HttpResponse:
        return redirect(job_url(self.admin_site, get_object_or_404(JobHistory, pk=id).job_id))
