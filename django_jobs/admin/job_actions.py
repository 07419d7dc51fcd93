"""What can be done with one job, by POST, each by the operation that does it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from django_jobs.exceptions import InvalidOption, JobNotFound
from django_jobs.operations.audit import audit
from django_jobs.operations.cancel import cancel
from django_jobs.operations.dead_letters import discard_dead, retry_dead
from django_jobs.operations.urgency import change_priority, run_now

from .actors import actor
from .base import JobsAdmin
from .job_page import as_text, find, render_job
from .links import job_url

Deed = Callable[[HttpRequest, UUID], None]


def cancel_job(request: HttpRequest, id: UUID) -> None:
    match cancel(id, actor=actor(request)):
        case "cancelled":
            messages.success(request, _("Cancelled."))
        case "requested":
            messages.success(request, _("It is running; it was asked to stop."))
        case "too_late":
            messages.warning(request, _("Too late: it is finished or dead."))


def retry_job(request: HttpRequest, id: UUID) -> None:
    if retry_dead(id, actor=actor(request)):
        messages.success(request, _("It goes back to its queue with fresh attempts."))
    else:
        _changed_meanwhile(request)


def discard_job(request: HttpRequest, id: UUID) -> None:
    if discard_dead(id, actor=actor(request)):
        messages.success(request, _("Discarded."))
    else:
        _changed_meanwhile(request)


def run_job_now(request: HttpRequest, id: UUID) -> None:
    _say(request, run_now(id, actor=actor(request)), _("It runs as soon as a worker is free."))


def change_job_priority(request: HttpRequest, id: UUID) -> None:
    text = request.POST.get("priority", "").strip()
    try:
        priority = int(text[:10])
        changed = change_priority(id, priority, actor=actor(request))
    except (ValueError, InvalidOption):
        messages.error(request, _("A priority is a whole number from -32768 to 32767."))
        return
    _say(request, changed, _("The priority is now %s.") % priority)


def reveal_payload(admin: JobsAdmin, request: HttpRequest, id: UUID) -> HttpResponse:
    found = find(id)
    audit(actor(request), "reveal_payload", "job", id)
    return render_job(admin, request, found, payload=as_text(getattr(found.row, "payload", None)), hidden=False, live=0)


def act(admin: JobsAdmin, request: HttpRequest, id: UUID, deed: Deed) -> HttpResponse:
    """Do it, and go back to the job's page."""
    try:
        deed(request, id)
    except JobNotFound:
        messages.warning(request, _("Nothing was done: the job is not there any more."))
    return redirect(job_url(admin.admin_site, id))


def _say(request: HttpRequest, change: str, done: str) -> None:
    match change:
        case "changed":
            messages.success(request, done)
        case "unchanged":
            messages.info(request, _("Nothing was done: it is so already."))
        case _:
            _changed_meanwhile(request)


def _changed_meanwhile(request: HttpRequest) -> None:
    messages.warning(request, _("Nothing was done: the job has changed meanwhile."))
