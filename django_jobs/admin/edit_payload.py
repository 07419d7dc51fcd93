"""A dead job's payload, changed before its retry. Shown only to those who may see all of it."""

from __future__ import annotations

import json
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from django_jobs.exceptions import InvalidPayload, JobNotFound, UnknownJobType
from django_jobs.models import DeadJob
from django_jobs.operations.audit import audit
from django_jobs.operations.dead_letters import retry_changed
from django_jobs.operations.payload_view import shown_payload

from .actors import actor
from .base import JobsAdmin
from .job_page import find
from .links import job_url
from .refusals import told
from .rights import REVEAL, may


def edit_payload(admin: JobsAdmin, request: HttpRequest, id: UUID) -> HttpResponse:
    """By POST throughout: opening the form shows what may be hidden elsewhere, and is audited then."""
    job = find(id).row
    if not isinstance(job, DeadJob):
        messages.warning(request, _("Nothing was done: the job has changed meanwhile."))
        return redirect(job_url(admin.admin_site, id))
    _check_sight(request, job)
    if "payload" not in request.POST:
        return _form(admin, request, job, json.dumps(job.payload, indent=2, ensure_ascii=False))
    text = request.POST["payload"]
    if fault := _retry(request, id, text):
        return _form(admin, request, job, text, fault)
    return redirect(job_url(admin.admin_site, id))


def _check_sight(request: HttpRequest, job: DeadJob) -> None:
    if shown_payload(job.type, job.payload) == job.payload:
        return
    if not may(request, REVEAL):
        raise PermissionDenied
    if "payload" not in request.POST:
        audit(actor(request), "reveal_payload", "job", job.pk)


def _retry(request: HttpRequest, id: UUID, text: str) -> str:
    """What is wrong with the payload; empty when the retry was asked for."""
    try:
        moved = retry_changed(id, json.loads(text), actor=actor(request))
    except (InvalidPayload, UnknownJobType) as error:
        return told(error)
    except (ValueError, RecursionError) as error:
        return _("This is not JSON: %s") % error
    except JobNotFound:
        moved = False
    if moved:
        messages.success(request, _("It goes back to its queue with the changed payload and fresh attempts."))
    else:
        messages.warning(request, _("Nothing was done: the job has changed meanwhile."))
    return ""


def _form(admin: JobsAdmin, request: HttpRequest, job: DeadJob, text: str, fault: str = "") -> HttpResponse:
    return admin.show(request, "edit_payload", _("Change the payload and retry"), job=job, text=text, fault=fault)
