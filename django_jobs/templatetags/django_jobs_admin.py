"""Template tags of the admin pages: numbers, times, durations, states and charts as text that is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobs.clock import now
from django_jobs.exceptions import ConfigurationError
from django_jobs.expectations import AtLeast, Expectation, is_number, parse_expectations

register = template.Library()

STATES = {
    "scheduled": _("scheduled"),
    "pending": _("pending"),
    "processing": _("processing"),
    "failed_retrying": _("retrying"),
    "succeeded": _("succeeded"),
    "cancelled": _("cancelled"),
    "discarded": _("discarded"),
    "dead": _("dead"),
}
SECOND, MINUTE = 1_000, 60_000
WIDTH, HEIGHT = 720, 120
CAP = 10_000
NOTHING = "\N{EN DASH}"
BRIEF = 240


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
    return format_html(
        '<time datetime="{}" title="{} {}, {}">{}</time>',
        local.isoformat(timespec="milliseconds"),
        _dated(local),
        local.tzname(),
        distance(instant),
        f"{local:%H:%M:%S}" if local.date() == timezone.localdate() else _dated(local),
    )


def _dated(local: datetime) -> str:
    return f"{date_format(local, 'SHORT_DATE_FORMAT')} {local:%H:%M:%S}"


@register.filter
def ago(instant: datetime | None) -> SafeString | str:
    """How long ago or ahead it is; the moment as a title."""
    if instant is None:
        return NOTHING
    local = timezone.localtime(instant)
    return format_html(
        '<time datetime="{}" title="{} {}">{}</time>',
        local.isoformat(timespec="milliseconds"),
        _dated(local),
        local.tzname(),
        distance(instant),
    )


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
    kind = status if status in STATES else "other"
    return badge(kind, STATES.get(status, status))


BULK_STATES = {
    "running": _("running"),
    "canary": _("waits for you"),
    "done": _("done"),
    "aborted": _("aborted"),
}


@register.filter
def bulk_state(name: str) -> SafeString:
    return badge(name, BULK_STATES.get(name, name))


def badge(kind: str, text: object) -> SafeString:
    return format_html('<span class="dj-badge dj-is-{}">{}</span>', kind, text)


WORKER_STATES = {"alive": _("alive"), "stopped": _("stopped"), "lost": _("silent")}


@register.filter
def worker_state(name: str) -> SafeString:
    return badge(name, WORKER_STATES.get(name, name))


SEVERITIES = {"warning": _("warning"), "error": _("error"), "critical": _("critical")}
CONDITIONS = {
    "overdue_success": _("no success for too long"),
    "unexpected_metrics": _("unexpected numbers"),
    "broken_schedule": _("broken schedule"),
    "new_dead_group": _("new dead group"),
    "dead_rate": _("many jobs die"),
    "lost_leases": _("lost leases"),
    "oldest_job": _("a job waits for too long"),
    "queue_trend": _("a queue grows"),
    "unserved_queue": _("nobody serves a queue"),
    "old_transaction": _("old transaction"),
    "dead_tuples": _("vacuum lags behind"),
    "missing_partition": _("missing partition"),
}
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
ALERT_STATES = {"open": _("open"), "acknowledged": _("acknowledged"), "resolved": _("resolved")}
SLOT_OUTCOMES = {
    "fired": _("fired"),
    "skipped_overlap": _("skipped: the last job was unfinished"),
    "run_now": _("run by hand"),
    "skipped_catch_up": _("missed"),
}
CATCH_UPS = {"latest": _("run the latest one"), "all": _("run all of them"), "skip": _("skip them")}
OVERLAPS = {"allow": _("enqueue all the same"), "skip": _("skip the slot")}


@register.filter
def severity(name: str) -> SafeString:
    return badge(name, SEVERITIES.get(name, name))


@register.filter
def condition(name: str) -> object:
    return CONDITIONS.get(name, name)


@register.filter
def place(condition_name: str) -> str:
    """The tab on which one looks first; empty where it is not one of ours."""
    return PLACES.get(condition_name, "")


@register.filter
def alert_state(name: str) -> SafeString:
    return badge(name, ALERT_STATES.get(name, name))


@register.filter
def slot_outcome(name: str) -> object:
    return SLOT_OUTCOMES.get(name, name)


@register.filter
def catch_up(name: str) -> object:
    return CATCH_UPS.get(name, name)


@register.filter
def overlap(name: str) -> object:
    return OVERLAPS.get(name, name)


SOURCES = {"admin": _("admin"), "command": _("command"), "code": _("code"), "api": _("API")}
TARGET_KINDS = {
    "job": _("job"),
    "queue": _("queue"),
    "schedule": _("schedule"),
    "alert": _("alert"),
    "bulk_operation": _("bulk operation"),
}
ACTIONS = {
    "cancel": _("cancelled"),
    "retry": _("retried"),
    "retry_changed": _("retried with another payload"),
    "discard": _("discarded"),
    "run_now": _("ran now"),
    "change_priority": _("changed the priority"),
    "reveal_payload": _("revealed the payload"),
    "pause": _("paused"),
    "resume": _("resumed"),
    "acknowledge": _("acknowledged"),
    "resolve": _("resolved"),
    "create": _("created"),
    "change": _("changed"),
    "delete": _("deleted"),
    "bulk_retry_requested": _("asked for a bulk retry"),
    "bulk_retry_confirmed": _("confirmed a bulk retry"),
    "bulk_retry_aborted": _("aborted a bulk retry"),
    "bulk_retry": _("bulk retry done"),
    "bulk_discard_requested": _("asked for a bulk discard"),
    "bulk_discard_aborted": _("aborted a bulk discard"),
    "bulk_discard": _("bulk discard done"),
}


@register.filter
def action(name: str) -> object:
    return ACTIONS.get(name, name)


@register.filter
def source(name: str) -> object:
    return SOURCES.get(name, name)


@register.filter
def target_kind(name: str) -> object:
    return TARGET_KINDS.get(name, name)


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
    waiting = job.status in ("scheduled", "pending")
    return "failed_retrying" if waiting and job.last_error else job.status


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


@register.inclusion_tag("admin/django_jobs/sparkline.html")
def sparkline(values: Sequence[int], label: object, tone: str = "plain") -> dict[str, Any]:
    """Bars, oldest first, and the same in words for those who do not see them."""
    top = max([*values, 1])
    bars = [
        {"x": n * 4, "y": _svg(20 - 20 * value / top), "height": _svg(20 * value / top)}
        for n, value in enumerate(values)
        if value
    ]
    said = gettext("%(total)s in all, at most %(top)s") % {
        "total": number(sum(values)),
        "top": number(max([*values, 0])),
    }
    return {"bars": bars, "width": str(max(len(values) * 4 - 1, 1)), "label": f"{label}: {said}", "tone": tone}


@register.inclusion_tag("admin/django_jobs/chart.html")
def chart(points: Iterable[Any], label: object, name: str) -> dict[str, Any]:
    """Stacked bars by minute, and a table of them. ``points``: oldest first, each with ``at``, ``good``, ``bad``."""
    points = list(points)
    top = round_ceiling(max([point.good + point.bad for point in points] + [1]))
    good, bad = sum(point.good for point in points), sum(point.bad for point in points)
    return {
        "bars": [_bar(n, point, top, WIDTH / len(points)) for n, point in enumerate(points)],
        "label": label,
        "name": name,
        "said": gettext("%(good)s succeeded, %(bad)s failed") % {"good": number(good), "bad": number(bad)},
        "top": top,
        "points": points,
        "first": points[0].at if points else None,
        "last": points[-1].at if points else None,
        "good": good,
        "bad": bad,
        "width": str(WIDTH),
        "height": str(HEIGHT),
        "middle": str(HEIGHT // 2),
    }


def _bar(n: int, point: Any, top: int, step: float) -> dict[str, str]:
    good, bad = HEIGHT * point.good / top, HEIGHT * point.bad / top
    return {
        "x": _svg(n * step),
        "width": _svg(step * 0.8),
        "good_y": _svg(HEIGHT - good),
        "good": _svg(good),
        "bad_y": _svg(HEIGHT - good - bad),
        "bad": _svg(bad),
        "said": f"{clock(point.at)}: {number(point.good)} / {number(point.bad)}",
    }


def _svg(value: float) -> str:
    """A coordinate: a point in every language."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def round_ceiling(value: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, …"""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= value:
                return digit * power
        power *= 10
