"""Schedules in words, with their next slots; run now, pause, make and change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.translation import gettext as _

from django_jobs.conf import get_settings
from django_jobs.exceptions import DjangoJobsError, EnqueueError, InvalidSchedule, ScheduleNotFound, UnknownJobType
from django_jobs.models import Schedule, ScheduleSlot
from django_jobs.operations.audit import audit
from django_jobs.operations.payload_view import shown_payload
from django_jobs.operations.schedules import (
    create_schedule,
    disable_schedule,
    enable_schedule,
    get_schedule,
    run_schedule_now,
    update_schedule,
)
from django_jobs.operations.timetable import Timetable
from django_jobs.registry import registry

from .actors import actor
from .base import JobsAdmin
from .filters import Filters
from .job_page import as_text
from .links import page_url
from .refusals import told
from .rights import ADD_SCHEDULE, CHANGE_SCHEDULE, REVEAL, RUN, may
from .schedule_form import (
    CATCH_UP,
    FIELDS,
    LONGEST_EXPECT,
    OVERLAP,
    changed_values,
    meaning,
    meaning_of,
    options_of,
    seen_values_of,
    values_of,
    zones,
)

SHOWN = 500
SHOWN_SLOTS = 20


class ScheduleAdmin(JobsAdmin):
    """Schedules are named in the query string, because a name is any text."""

    def pages(self) -> list[URLPattern]:
        return [
            *super().pages(),
            self.page("one/", self.schedule, "one"),
            self.page("form/", self.edit, "form"),
            self.action("reveal/", self.reveal, "reveal", REVEAL),
            self.post("check/", self.try_out, "check"),
            self.post("save/", self.store, "save"),
            self.action("pause/", self.pause, "pause", CHANGE_SCHEDULE),
            self.action("resume/", self.resume, "resume", CHANGE_SCHEDULE),
            self.action("run/", self.run, "run", RUN),
        ]

    def list_page(self, request: HttpRequest) -> HttpResponse:
        filters = Filters.of(request)
        text = filters.write("name", _("Name contains"))
        named = Schedule.objects.filter(pk__icontains=text) if text else Schedule.objects.all()
        found = list(named.order_by("pk")[: SHOWN + 1])
        rows = [(row, meaning(Timetable.of(row), slots=0)) for row in found[:SHOWN]]
        return self.show(
            request,
            "schedules",
            _("Schedules"),
            schedules=rows,
            more=len(found) > SHOWN,
            filters=filters,
            may_add=may(request, ADD_SCHEDULE),
            live=10,
        )

    def schedule(self, request: HttpRequest) -> HttpResponse:
        row = _named(request.GET.get("name", ""))
        slots = ScheduleSlot.objects.filter(schedule=row.pk).order_by("-slot")[:SHOWN_SLOTS]
        shown = shown_payload(row.type, row.payload)
        return self.show(
            request,
            "schedule",
            row.pk,
            schedule=row,
            meaning=meaning(Timetable.of(row)),
            slots=slots,
            payload=as_text(shown),
            hidden=shown != row.payload,
            may_change=may(request, CHANGE_SCHEDULE),
            may_run=may(request, RUN),
            current="schedule_changelist",
            live=10,
        )

    def edit(self, request: HttpRequest) -> HttpResponse:
        name = request.GET.get("name", "")
        row = _named(name) if name else None
        _check_right(request, row)
        if row is None:
            return self._form(request, None, {"timezone": viewers_zone(), "payload": "{}"})
        return self._form(request, row, seen_values_of(row))

    def reveal(self, request: HttpRequest) -> HttpResponse:
        """The form with a payload that is hidden otherwise. By POST, and audited, as for a job."""
        row = _named(request.POST.get("name", ""))
        _check_right(request, row)
        audit(actor(request), "reveal_payload", "schedule", row.pk)
        return self._form(request, row, values_of(row))

    def try_out(self, request: HttpRequest) -> HttpResponse:
        """The form again, with what its values mean. Saves nothing."""
        row = _edited(request)
        _check_right(request, row)
        return self._form(request, row, _values(request))

    def store(self, request: HttpRequest) -> HttpResponse:
        row = _edited(request)
        _check_right(request, row)
        values = _values(request)
        if row is not None and _is_hidden(request, row):
            for name in ("payload", "type"):  # another type could tell what this one hides
                values.pop(name, None)
        try:
            saved = self._store(request, row, values)
        except DjangoJobsError as fault:
            kept = seen_values_of(row) if row else {}
            return self._form(request, row, kept | values, told(fault))
        messages.success(request, _("Saved."))
        return self._back(saved.pk)

    def _store(self, request: HttpRequest, row: Schedule | None, values: Mapping[str, str]) -> Schedule:
        if row is None:
            name = values.get("name", "").strip()
            return create_schedule(name, actor=actor(request), **options_of(values))
        return update_schedule(row.pk, actor=actor(request), **options_of(changed_values(row, values)))

    def _form(
        self, request: HttpRequest, row: Schedule | None, values: Mapping[str, str], fault: str = ""
    ) -> HttpResponse:
        return self.show(
            request,
            "schedule_form",
            _("Change schedule") if row else _("New schedule"),
            schedule=row,
            values=values,
            meaning=meaning_of({**({"name": row.pk} if row else {}), **values}),
            fault=fault,
            hidden=row is not None and "payload" not in values,
            fixed=row is not None and _is_hidden(request, row),
            may_reveal=may(request, REVEAL),
            types=sorted(job_type.name for job_type in registry),
            queues=get_settings().queues,
            zones=zones(),
            catch_up=CATCH_UP,
            overlap=OVERLAP,
            longest_expect=LONGEST_EXPECT,
            current="schedule_changelist",
        )

    def pause(self, request: HttpRequest) -> HttpResponse:
        return self._act(request, disable_schedule, _("It fires no more until it is resumed."))

    def resume(self, request: HttpRequest) -> HttpResponse:
        return self._act(request, enable_schedule, _("It fires again, from its next slot on."))

    def run(self, request: HttpRequest) -> HttpResponse:
        return self._act(request, run_schedule_now, _("Its job is enqueued once more."))

    def _act(self, request: HttpRequest, operation: Callable[..., Any], done: str) -> HttpResponse:
        name = _named(request.POST.get("name", "")).pk
        try:
            operation(name, actor=actor(request))
        except (ScheduleNotFound, InvalidSchedule, EnqueueError, UnknownJobType) as fault:
            messages.error(request, told(fault))
        else:
            messages.success(request, done)
        return self._back(name)

    def _back(self, name: str) -> HttpResponse:
        return redirect(page_url(self.admin_site, "schedule_one") + Filters(values={}).query(name=name))


def viewers_zone() -> str:
    """The zone in which the viewer thinks."""
    return timezone.get_current_timezone_name()


def _named(name: str) -> Schedule:
    try:
        return get_schedule(name.replace("\x00", ""))
    except ScheduleNotFound as error:
        raise Http404(str(error)) from None


def _edited(request: HttpRequest) -> Schedule | None:
    """The schedule whose form it is; None for a new one."""
    return _named(request.POST["edited"]) if request.POST.get("edited") else None


def _values(request: HttpRequest) -> dict[str, str]:
    return {name: request.POST[name] for name in ("name", *FIELDS) if name in request.POST}


def _check_right(request: HttpRequest, row: Schedule | None) -> None:
    if not may(request, CHANGE_SCHEDULE if row else ADD_SCHEDULE):
        raise PermissionDenied


def _is_hidden(request: HttpRequest, row: Schedule) -> bool:
    """May this viewer not see all of the payload?"""
    return shown_payload(row.type, row.payload) != row.payload and not may(request, REVEAL)
