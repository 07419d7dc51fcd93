"""Unfinished jobs, and the pages that belong to no table alone: the overview and the page of any job."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from . import job_actions
from .base import JobsAdmin
from .edit_payload import edit_payload
from .job_page import job_page
from .live_jobs import live_jobs
from .overview import overview
from .rights import CANCEL, DISCARD, RETRY, REVEAL, RUN


class JobAdmin(JobsAdmin):
    def pages(self) -> list[URLPattern]:
        return [
            *super().pages(),
            self.page("overview/", self.overview, "overview"),
            self.page("<uuid:id>/", self.job, "change"),
            self.deed("cancel", job_actions.cancel_job, CANCEL),
            self.deed("retry", job_actions.retry_job, RETRY),
            self.deed("discard", job_actions.discard_job, DISCARD),
            self.deed("run_now", job_actions.run_job_now, RUN),
            self.deed("priority", job_actions.change_job_priority, RUN),
            self.action("<uuid:id>/reveal/", self.reveal, "reveal", REVEAL),
            self.action("<uuid:id>/edit/", self.edit, "edit", RETRY),
        ]

    def deed(self, name: str, deed: job_actions.Deed, right: str) -> URLPattern:
        return self.action(f"<uuid:id>/{name}/", partial(self.act, deed=deed), name, right)

    def act(self, request: HttpRequest, id: UUID, deed: job_actions.Deed) -> HttpResponse:
        return job_actions.act(self, request, id, deed)

    def list_page(self, request: HttpRequest) -> HttpResponse:
        return live_jobs(self, request)

    def overview(self, request: HttpRequest) -> HttpResponse:
        return overview(self, request)

    def job(self, request: HttpRequest, id: UUID) -> HttpResponse:
        return job_page(self, request, id)

    def reveal(self, request: HttpRequest, id: UUID) -> HttpResponse:
        return job_actions.reveal_payload(self, request, id)

    def edit(self, request: HttpRequest, id: UUID) -> HttpResponse:
        return edit_payload(self, request, id)
