"""Dead jobs by type and error: the list of groups, and the page of one."""

from __future__ import annotations

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobs.models import DeadJob
from django_jobs.operations.dead_filter import DeadFilter
from django_jobs.operations.dead_groups import ORDERS, dead_count, dead_group, dead_groups

from .base import JobsAdmin
from .filters import Filters
from .rights import rights_of

PAGE = 25
MOST_PAGES = 10_000
HOURS = 24
SHOWN_JOBS = 20
ORDER_LABELS = {
    "count": gettext_lazy("Largest first"),
    "last_seen": gettext_lazy("Latest death first"),
    "first_seen": gettext_lazy("Newest group first"),
}


def groups_page(admin: JobsAdmin, request: HttpRequest) -> HttpResponse:
    filters = Filters.of(request)
    others = [(name, ORDER_LABELS[name]) for name in ORDERS[1:]]
    order = filters.choose("order", _("Order"), others, ORDER_LABELS["count"]) or "count"
    page = filters.value("page")
    offset = min(int(page[:6]), MOST_PAGES) * PAGE if page.isdecimal() else 0
    found = dead_groups(
        type=filters.type() or None,
        error=filters.write("error", _("Error contains")) or None,
        order=order,  # type: ignore[arg-type]
        hours=HOURS,
        limit=PAGE,
        offset=offset,
    )
    return admin.show(
        request,
        "groups",
        _("Dead groups"),
        found=found,
        filters=filters,
        total=dead_count(),
        next_page=str(offset // PAGE + 1) if found.more else "",
        current="deadjob_groups",
        live=10,
    )


def group_page(admin: JobsAdmin, request: HttpRequest) -> HttpResponse:
    """``?type=…&fingerprint=…``: a fingerprint may be empty, and both hold any text."""
    values = Filters.of(request)
    type_name, fingerprint = values.value("type"), values.value("fingerprint")
    detail = dead_group(type_name, fingerprint)
    if detail is None:
        raise Http404(_("No job of this group is dead (any more)."))
    these = DeadJob.objects.filter(type=type_name, fingerprint=fingerprint)
    return admin.show(
        request,
        "group",
        _("Dead group"),
        group=detail.group,
        detail=detail,
        jobs=these.defer("payload", "errors", "context").order_by("-failed_at", "-id")[:SHOWN_JOBS],
        spread=spread(detail.attempts),
        tenants=spread(detail.tenants),
        filter_json=json.dumps(DeadFilter(type=type_name, fingerprint=fingerprint).as_json()),
        rights=rights_of(request),
        current="deadjob_groups",
        live=10,
    )


def spread(counts: dict[str, int] | dict[int, int], most: int = 8) -> list[dict[str, object]]:
    """The commonest values, with the width of their bars in percent."""
    top = max(counts.values(), default=1)
    return [
        {"name": name, "count": count, "width": f"{100 * count / top:.1f}"} for name, count in [*counts.items()][:most]
    ]
