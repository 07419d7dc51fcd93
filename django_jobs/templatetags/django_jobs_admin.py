"""Template tags of the admin pages: numbers, times, durations and states as text that is escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from django_jobs import labels
from django_jobs.clock import now
from django_jobs.exceptions import ConfigurationError
from django_jobs.expectations import AtLeast, Expectation, is_number, parse_expectations
from django_jobs.operations import lookup

register = template.Library()

SECOND, MINUTE = 1_000, 60_000
CAP = 10_000
NOTHING = "\N{EN DASH}"
BRIEF = 240
PLACES = {
    "overdue_success": "schedule_changelist",
    "unexpected_metrics": "jobhistory_changelist",
    "broken_schedule": "schedule_changelist",
    "new_dead_group": "deadjob_groups",
    "dead_rate": "deadjob_groups",
    "lost_leases": "worker_changelist",
    "oldest_job": "queue_changelist",
    "queue_trend": "queue_changelist",
    "unserved_queue": "worker_changelist",
}


@register.filter
def number(value: Any, places: int | None = None) -> str:
    """Grouped as the viewer's language groups."""
    return NOTHING if value is None else number_format(value, decimal_pos=places, use_l10n=True, force_grouping=True)


@register.simple_tag
def counted(rows: Any) -> str:
    """How many rows a list has, with a plus where nobody counted on."""
    return number(rows.count) + ("+" if rows.counted_more else "")


@register.filter
def capped(value: int) -> str:
    """A count that stopped at CAP + 1."""
    return f"{number(CAP)}+" if value > CAP else number(value)


@register.filter
def when(instant: datetime | None) -> SafeString | str:
    """The moment in the viewer's zone, to the second, without the date if it is today's; all of it as a title."""
    if instant is None:
        return NOTHING
    local = timezone.localtime(instant)
    shown = f"{local:%H:%M:%S}" if local.date() == timezone.localdate() else _dated(local)
    return _time(local, f"{_zoned(local)}, {distance(instant)}", shown)


def _time(local: datetime, title: str, shown: str) -> SafeString:
    machine = local.isoformat(timespec="milliseconds")
    return format_html('<time datetime="{}" title="{}">{}</time>', machine, title, shown)


def _dated(local: datetime) -> str:
    return f"{date_format(local, 'SHORT_DATE_FORMAT')} {local:%H:%M:%S}"


def _zoned(local: datetime) -> str:
    return f"{_dated(local)} {local.tzname()}"


@register.filter
def ago(instant: datetime | None) -> SafeString | str:
    """How long ago or ahead it is; the moment as a title."""
    if instant is None:
        return NOTHING
    local = timezone.localtime(instant)
    return _time(local, _zoned(local), distance(instant))


def distance(instant: datetime) -> str:
    passed = round((now() - instant).total_seconds())
    span = _roughly(abs(passed))
    return gettext("%s ago") % span if passed >= 0 else gettext("in %s") % span


@register.filter
def duration(milliseconds: float | None) -> str:
    """At most two units: ``840 ms``, ``12.4 s``, ``3 min 5 s``, ``2 h 10 min``, ``4 d 3 h``."""
    if milliseconds is None:
        return NOTHING
    whole = int(milliseconds)
    if whole < SECOND:
        return f"{whole} ms"
    if whole < MINUTE:
        return f"{number(whole / 1000, 1)} s"
    return _whole(whole // SECOND)


def _whole(seconds: int) -> str:
    """At most two units."""
    for unit, name, part, part_name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= unit:
            rest = seconds % unit // part
            return f"{number(seconds // unit)} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{seconds} s"


def _roughly(seconds: int) -> str:
    """In one unit, rounded down."""
    for unit, name, most in ((1, "s", 60), (60, "min", 3_600), (3_600, "h", 172_800)):
        if seconds < most:
            return f"{seconds // unit} {name}"
    return f"{number(seconds // 86_400)} d"


@register.filter
def seconds(value: Any) -> str:
    """A timedelta, or a number of seconds, as ``duration`` writes it."""
    if value is None:
        return NOTHING
    return duration((value.total_seconds() if hasattr(value, "total_seconds") else value) * 1000)


@register.filter
def state(status: str) -> SafeString:
    """A badge: a word, with a colour that says the same."""
    kind = status if status in labels.STATES else "other"
    return badge(kind, labels.STATES.get(status, status))


@register.filter
def bulk_state(name: str) -> SafeString:
    return badge(name, labels.BULK_STATES.get(name, name))


def badge(kind: str, text: object) -> SafeString:
    return format_html('<span class="dj-badge dj-is-{}">{}</span>', kind, text)


@register.filter
def worker_state(name: str) -> SafeString:
    return badge(name, labels.WORKER_STATES.get(name, name))


@register.filter
def severity(name: str) -> SafeString:
    return badge(name, labels.SEVERITIES.get(name, name))


@register.filter
def condition(name: str) -> object:
    return labels.CONDITIONS.get(name, name)


@register.filter
def place(condition_name: str) -> str:
    """The tab on which one looks first; empty where it is not one of ours."""
    return PLACES.get(condition_name, "")


@register.filter
def alert_state(name: str) -> SafeString:
    return badge(name, labels.ALERT_STATES.get(name, name))


@register.filter
def slot_outcome(name: str) -> object:
    return labels.SLOT_OUTCOMES.get(name, name)


@register.filter
def catch_up(name: str) -> object:
    return labels.CATCH_UPS.get(name, name)


@register.filter
def overlap(name: str) -> object:
    return labels.OVERLAPS.get(name, name)


@register.filter
def action(name: str) -> object:
    return labels.ACTIONS.get(name, name)


@register.filter
def source(name: str) -> object:
    return labels.SOURCES.get(name, name)


@register.filter
def target_kind(name: str) -> object:
    return labels.TARGET_KINDS.get(name, name)


@register.filter
def brief(value: Any) -> str:
    """JSON on one line, not all of it."""
    text = "" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= BRIEF else text[:BRIEF] + "…"


@register.filter
def expectations(stored: Any) -> list[str]:
    """What each number should be like; as it stands in the row, where that says nothing."""
    try:
        expected = parse_expectations(stored)
    except ConfigurationError:
        return [brief(stored)]
    return [f"{name}: {_expected(expectation)}" for name, expectation in expected.items()]


def _expected(expectation: Expectation) -> str:
    if isinstance(expectation, AtLeast):
        return gettext("at least %s") % number(expectation.minimum)
    return gettext("within %s of the usual") % percent(expectation.share)


@register.filter
def reported(metrics: Any, usual: Any) -> list[str]:
    """What a run reported, beside what is usual."""
    if not isinstance(metrics, Mapping):
        return [brief(metrics)]
    return [f"{name}: {_reported(value, get(usual, name))}" for name, value in metrics.items()]


def _reported(value: Any, normal: Any) -> str:
    shown = number(value) if is_number(value) else brief(value)
    return (
        gettext("%(shown)s (usually %(usual)s)") % {"shown": shown, "usual": number(normal)}
        if is_number(normal)
        else shown
    )


@register.filter
def age(instant: datetime | None) -> str:
    """How long it has been."""
    return NOTHING if instant is None else _whole(max(round((now() - instant).total_seconds()), 0))


@register.filter
def attribute(value: float) -> str:
    """A number as HTML wants it, in every language."""
    return f"{value:g}"


@register.filter
def public_status(job: Any) -> str:
    """As ``get_job`` says it."""
    return lookup.public_status(job.status, job.last_error)


@register.filter
def percent(part: Any) -> str:
    return f"{number(part * 100, 0)} %" if is_number(part) else NOTHING


@register.filter
def share(progress: Any) -> str | None:
    """The fraction as an attribute wants it; None where there is none."""
    fraction = get(progress, "fraction")
    return f"{min(max(fraction, 0), 1):g}" if is_number(fraction) else None


@register.filter
def get(mapping: Any, key: Any) -> Any:
    return mapping.get(key) if isinstance(mapping, Mapping) else None


@register.filter
def clock(instant: datetime | None) -> str:
    return "" if instant is None else f"{timezone.localtime(instant):%H:%M}"


@register.filter
def distance_of(instant: datetime | None) -> str:
    return "" if instant is None else distance(instant)


@register.simple_tag
def query(filters: Any, **changes: str) -> str:
    """The list's own address with some of its filters changed."""
    return str(filters.query(**changes))


@register.simple_tag
def querystring_of(**values: Any) -> str:
    return "?" + urlencode({name: value for name, value in values.items() if value not in (None, "")})
