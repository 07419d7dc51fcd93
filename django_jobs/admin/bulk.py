"""Many dead jobs at once: what was chosen, what will happen, and how far it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _

from django_jobs.exceptions import BulkNotFound, InvalidOption
from django_jobs.ids import uuid7
from django_jobs.models import BulkKind, BulkOperation
from django_jobs.operations.bulk import (
    LARGEST_CANARY,
    BulkInfo,
    Kind,
    abort_bulk,
    confirm_bulk,
    get_bulk,
    preview_bulk,
    start_bulk,
)
from django_jobs.operations.dead_filter import DeadFilter

from .actors import actor
from .base import JobsAdmin
from .filters import Filters
from .links import page_url
from .listing import Listing
from .rights import DISCARD, RETRY, may

LONGEST_SPREAD = 24 * 60  # minutes
RIGHTS = {BulkKind.RETRY.value: RETRY, BulkKind.DISCARD.value: DISCARD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a form asks for. Checked: whatever it holds came from a browser."""

    kind: Kind
    filter: DeadFilter

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        """Raises PermissionDenied without the right for the kind, InvalidOption for what is no selection."""
        kind: Kind = "discard" if request.POST.get("kind") == BulkKind.DISCARD else "retry"
        if request.POST.get("kind") != kind or not may(request, RIGHTS[kind]):
            raise PermissionDenied
        return cls(kind=kind, filter=_chosen(request))


def _chosen(request: HttpRequest) -> DeadFilter:
    if request.POST.get("which") == "ticked":
        ids = request.POST.getlist("ids")
        if not ids:
            raise InvalidOption(_("No job is ticked."))
        return _filter_of({"ids": ids})
    return _filter_of(_mapping(request.POST.get("filter", "")))


def _unclear() -> InvalidOption:
    return InvalidOption(_("The form does not say which jobs are meant. Go back and choose again."))


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        stored = None
    if not isinstance(stored, dict):
        raise _unclear()
    return stored


def _filter_of(stored: Mapping[str, Any]) -> DeadFilter:
    try:
        return DeadFilter.from_json(stored)
    except (TypeError, ValueError, AttributeError) as error:
        raise _unclear() from error


def preview(admin: JobsAdmin, request: HttpRequest) -> HttpResponse:
    """What would happen. Changes nothing."""
    try:
        asked = Request.of(request)
    except InvalidOption as fault:
        messages.warning(request, str(fault))
        return redirect(page_url(admin.admin_site, "deadjob_changelist"))
    return _form(admin, request, asked)


def _form(admin: JobsAdmin, request: HttpRequest, asked: Request, fault: str = "") -> HttpResponse:
    title = _("Retry dead jobs") if asked.kind == "retry" else _("Discard dead jobs")
    return admin.show(
        request,
        "bulk_preview",
        title,
        asked=asked,
        terms=described(asked.filter),
        count=preview_bulk(asked.kind, asked.filter).count,
        filter_json=json.dumps(asked.filter.as_json()),
        bulk_id=uuid7(),
        largest_canary=LARGEST_CANARY,
        longest_spread=LONGEST_SPREAD,
        fault=fault,
        values=request.POST,
        current="deadjob_changelist",
    )


def start(admin: JobsAdmin, request: HttpRequest) -> HttpResponse:
    """The form carries the operation's id, so that a second click asks for the same one."""
    asked = None
    try:
        asked = Request.of(request)
        started = start_bulk(
            asked.kind,
            asked.filter,
            actor=actor(request),
            spread=_minutes(request),
            canary=_whole(request, "canary", LARGEST_CANARY) if asked.kind == "retry" else 0,
            id=_bulk_id(request),
        )
    except InvalidOption as fault:
        if asked is not None:
            return _form(admin, request, asked, str(fault))
        messages.warning(request, str(fault))
        return redirect(page_url(admin.admin_site, "deadjob_changelist"))
    if may(request, "view_bulkoperation"):
        return redirect(page_url(admin.admin_site, "bulkoperation_change", started.id))
    messages.success(request, _("Maintenance does it now. You may not see how far it is."))
    return redirect(page_url(admin.admin_site, "deadjob_changelist"))


def _minutes(request: HttpRequest) -> timedelta | None:
    minutes = _whole(request, "spread", LONGEST_SPREAD)
    return timedelta(minutes=minutes) if minutes else None


def _whole(request: HttpRequest, name: str, most: int) -> int:
    text = request.POST.get(name, "").strip() or "0"
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= most):
        raise InvalidOption(_("“%(text)s” is no whole number from 0 to %(most)s.") % {"text": text[:40], "most": most})
    return int(text)


def _bulk_id(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("bulk_id", ""))
    except ValueError:
        raise _unclear() from None


def described(wanted: DeadFilter) -> list[tuple[str, str]]:
    """The terms of a filter, for people."""
    labels = {
        "type": _("Type"),
        "fingerprint": _("Fingerprint"),
        "queue": _("Queue"),
        "tenant": _("Tenant"),
        "reason": _("Reason"),
        "failed_from": _("Died from"),
        "failed_before": _("Died before"),
        "error": _("Error contains"),
    }
    terms = [(label, str(value)) for name, label in labels.items() if (value := getattr(wanted, name)) is not None]
    return [*terms, (_("Ticked"), str(len(wanted.ids)))] if wanted.ids is not None else terms


class BulkOperationAdmin(JobsAdmin):
    def pages(self) -> list[URLPattern]:
        return [
            *super().pages(),
            self.page("<uuid:id>/", self.operation, "change"),
            self.post("<uuid:id>/confirm/", self.confirm, "confirm"),
            self.post("<uuid:id>/abort/", self.abort, "abort"),
        ]

    def list_page(self, request: HttpRequest) -> HttpResponse:
        filters = Filters.of(request)
        operations = BulkOperation.objects.defer("canary_ids")
        rows = Listing().take(operations, Q(), indexed=True, before=filters.value("before"))
        infos = [(row, described(DeadFilter.from_json(row.filter))) for row in rows.rows]
        return self.show(
            request, "bulk_operations", _("Bulk operations"), rows=rows, operations=infos, filters=filters, live=5
        )

    def operation(self, request: HttpRequest, id: UUID) -> HttpResponse:
        info = _found(id)
        title = _("Retry of dead jobs") if info.kind == BulkKind.RETRY else _("Discarding of dead jobs")
        return self.show(
            request,
            "bulk_operation",
            title,
            operation=info,
            terms=described(info.filter),
            canary=info.canary_statuses() if info.canary_ids else {},
            may_act=may(request, RIGHTS[info.kind]),
            live=0 if info.is_over else 2,
            current="bulkoperation_changelist",
        )

    def confirm(self, request: HttpRequest, id: UUID) -> HttpResponse:
        too_late = _("Nothing was done: it does not wait for a confirmation any more.")
        return self._decide(request, id, confirm_bulk, _("The rest follows."), too_late)

    def abort(self, request: HttpRequest, id: UUID) -> HttpResponse:
        done = _("Aborted. Jobs that were moved before stay where they are.")
        return self._decide(request, id, abort_bulk, done, _("Nothing was done: it is over already."))

    def _decide(
        self, request: HttpRequest, id: UUID, operation: Callable[..., bool], done: str, too_late: str
    ) -> HttpResponse:
        if not may(request, RIGHTS[_found(id).kind]):
            raise PermissionDenied
        if operation(id, actor=actor(request)):
            messages.success(request, done)
        else:
            messages.warning(request, too_late)
        return redirect(page_url(self.admin_site, "bulkoperation_change", id))


def _found(id: UUID) -> BulkInfo:
    try:
        return get_bulk(id)
    except BulkNotFound as error:
        raise Http404(str(error)) from None
