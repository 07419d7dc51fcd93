"""Where pages are, on whichever site and prefix."""

from __future__ import annotations

from uuid import UUID

from django.contrib.admin import AdminSite
from django.urls import reverse


def page_url(site: AdminSite, name: str, *args: object) -> str:
    """``name``: model and page, such as ``job_changelist``."""
    return reverse(f"admin:django_jobs_{name}", args=args, current_app=site.name)


def job_url(site: AdminSite, job_id: UUID | str) -> str:
    return page_url(site, "job_change", UUID(str(job_id)))
