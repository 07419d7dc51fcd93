"""The pages one can go to, as tabs on each of them."""

from __future__ import annotations

from dataclasses import dataclass

from django.apps import apps
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

APP = "django_jobs"

# Title, model, URL name.
TABS = (
    (_("Overview"), "job", "overview"),
    (_("Dead groups"), "deadjob", "groups"),
    (_("Dead jobs"), "deadjob", "changelist"),
    (_("Jobs"), "job", "changelist"),
    (_("History"), "jobhistory", "changelist"),
    (_("Schedules"), "schedule", "changelist"),
    (_("Queues"), "queue", "changelist"),
    (_("Workers"), "worker", "changelist"),
    (_("Alerts"), "alert", "changelist"),
    (_("Bulk operations"), "bulkoperation", "changelist"),
    (_("Audit"), "auditentry", "changelist"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    title: str
    url: str
    model: str
    name: str


def navigation(site: AdminSite, request: HttpRequest) -> list[Tab]:
    """The tabs of the models that this site shows and this viewer may view."""
    return [
        Tab(
            title=str(title),
            url=reverse(f"admin:{APP}_{model}_{name}", current_app=site.name),
            model=model,
            name=f"{model}_{name}",
        )
        for title, model, name in TABS
        if _may_view(site, request, model)
    ]


def _may_view(site: AdminSite, request: HttpRequest, model_name: str) -> bool:
    try:
        model = apps.get_model(APP, model_name)
    except LookupError:
        return False
    return site.is_registered(model) and site.get_model_admin(model).has_view_permission(request)
