"""What the watcher found to be wrong; acknowledge it, or call it resolved."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _

from django_jobs.exceptions import AlertNotFound
from django_jobs.labels import ALERT_STATES
from django_jobs.models import Alert, AlertState
from django_jobs.operations.alerts import acknowledge_alert, resolve_alert

from .actors import actor
from .base import JobsAdmin
from .filters import Filters
from .links import page_url
from .listing import Listing
from .rights import ALERT, may


class AlertAdmin(JobsAdmin):
    def pages(self) -> list[URLPattern]:
        return [
            *super().pages(),
            self.action("<uuid:id>/acknowledge/", self.acknowledge, "acknowledge", ALERT),
            self.action("<uuid:id>/resolve/", self.resolve, "resolve", ALERT),
        ]

    def list_page(self, request: HttpRequest) -> HttpResponse:
        filters = Filters.of(request)
        state = filters.choose("state", _("State"), ALERT_STATES.items(), _("Not resolved"))
        wanted = Q(state=state) if state else ~Q(state=AlertState.RESOLVED)
        rows = Listing().take(Alert.objects.all(), wanted, indexed=False, before=filters.value("before"))
        return self.show(
            request,
            "alerts",
            _("Alerts"),
            rows=rows,
            alerts=rows.rows,
            filters=filters,
            may_act=may(request, ALERT),
            live=10,
        )

    def acknowledge(self, request: HttpRequest, id: UUID) -> HttpResponse:
        return self._act(request, id, acknowledge_alert, _("Acknowledged."))

    def resolve(self, request: HttpRequest, id: UUID) -> HttpResponse:
        return self._act(request, id, resolve_alert, _("Resolved. If it still holds, a new one opens."))

    def _act(self, request: HttpRequest, id: UUID, operation: Callable[..., bool], done: str) -> HttpResponse:
        try:
            changed = operation(id, actor=actor(request))
        except AlertNotFound as error:
            raise Http404(str(error)) from None
        if changed:
            messages.success(request, done)
        else:
            messages.warning(request, _("Nothing was done: the alert has changed meanwhile."))
        return redirect(page_url(self.admin_site, "alert_changelist"))
