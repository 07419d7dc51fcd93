"""The queues: how full, how old, how fast; pause and resume."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.exceptions import InvalidOption, UnknownQueue
from django_jobs.operations.queues import pause, resume

from .actors import actor
from .base import JobsAdmin
from .links import page_url
from .queue_rows import living_workers, queue_rows
from .rights import PAUSE, may
from .throughput import throughput

LONGEST_PAUSE = timedelta(days=366)


class QueueAdmin(JobsAdmin):
    def pages(self) -> list[URLPattern]:
        return [
            *super().pages(),
            self.action("pause/", self.pause, "pause", PAUSE),
            self.action("resume/", self.resume, "resume", PAUSE),
        ]

    def list_page(self, request: HttpRequest) -> HttpResponse:
        queues = queue_rows(throughput(get_settings().queues), living_workers())
        return self.show(request, "queues", _("Queues"), queues=queues, may_pause=may(request, PAUSE), live=5)

    def pause(self, request: HttpRequest) -> HttpResponse:
        queue = request.POST.get("queue", "")
        try:
            pause(queue, until=_until(request.POST.get("until", "")), actor=actor(request))
        except (InvalidOption, UnknownQueue) as fault:
            messages.error(request, str(fault))
        else:
            messages.success(request, _("Queue “%s” is paused. What runs goes on.") % queue)
        return redirect(page_url(self.admin_site, "queue_changelist"))

    def resume(self, request: HttpRequest) -> HttpResponse:
        queue = request.POST.get("queue", "")
        try:
            resume(queue, actor=actor(request))
        except UnknownQueue as fault:
            messages.error(request, str(fault))
        else:
            messages.success(request, _("Queue “%s” is resumed.") % queue)
        return redirect(page_url(self.admin_site, "queue_changelist"))


def _until(text: str) -> datetime | None:
    """A moment in the viewer's zone, as ``<input type=datetime-local>`` writes it; empty means without an end."""
    if not text:
        return None
    try:
        instant = parse_datetime(text)
    except ValueError:
        instant = None
    if instant is None:
        raise InvalidOption(_("“%s” is no date and time.") % text[:40])
    moment = timezone.make_aware(instant) if timezone.is_naive(instant) else instant
    if not clock.now() < moment < clock.now() + LONGEST_PAUSE:
        raise InvalidOption(_("A pause ends in the future, within a year."))
    return moment
