"""What a schedule's form says, as the operation takes it; and what it means, before anything is saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import available_timezones

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobs import clock
from django_jobs.cron import PreviewedSlot, day_warning, describe, describe_interval
from django_jobs.exceptions import DjangoJobsError, InvalidSchedule
from django_jobs.models import CatchUp, Overlap, Schedule
from django_jobs.operations.payload_view import shown_payload
from django_jobs.operations.schedule_spec import make_spec, moment_fault
from django_jobs.operations.schedules import preview_timetable
from django_jobs.operations.timetable import Timetable
from django_jobs.registry import registry

from .refusals import told

SLOTS = 5
MOST_DIGITS = 20
LONGEST_EXPECT = 4_000  # characters
UNNAMED = "…"
CATCH_UP = (
    (CatchUp.LATEST.value, gettext_lazy("run the latest one")),
    (CatchUp.ALL.value, gettext_lazy("run all of them")),
    (CatchUp.SKIP.value, gettext_lazy("skip them")),
)
OVERLAP = (
    (Overlap.ALLOW.value, gettext_lazy("enqueue all the same")),
    (Overlap.SKIP.value, gettext_lazy("skip the slot")),
)
FIELDS = (
    "type",
    "cron",
    "every",
    "timezone",
    "jitter",
    "start_at",
    "end_at",
    "queue",
    "priority",
    "tenant",
    "catch_up",
    "overlap",
    "expect_success_within",
    "expect",
    "payload",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """``warning``: what to know about its days. ``fault``: why it would be refused; it may have a meaning even so."""

    words: str = ""
    warning: str = ""
    slots: list[PreviewedSlot] = field(default_factory=list)
    fault: str = ""


def values_of(schedule: Schedule) -> dict[str, str]:
    """The form's values, as text."""
    return {
        "name": schedule.pk,
        "type": schedule.type,
        "cron": schedule.cron,
        "every": _seconds_text(schedule.every),
        "timezone": schedule.timezone,
        "jitter": _seconds_text(schedule.jitter or None),
        "start_at": _moment_text(schedule.start_at),
        "end_at": _moment_text(schedule.end_at),
        "queue": schedule.queue,
        "priority": "" if schedule.priority is None else str(schedule.priority),
        "tenant": schedule.tenant,
        "catch_up": schedule.catch_up,
        "overlap": schedule.overlap,
        "expect_success_within": _seconds_text(schedule.expect_success_within),
        "expect": json.dumps(schedule.expect, ensure_ascii=False) if schedule.expect else "",
        "payload": json.dumps(schedule.payload, indent=2, ensure_ascii=False),
    }


def seen_values_of(schedule: Schedule) -> dict[str, str]:
    """Without the payload, if any of it may be secret: the form leaves it as it is then."""
    values = values_of(schedule)
    if shown_payload(schedule.type, schedule.payload) != schedule.payload:
        del values["payload"]
    return values


def changed_values(schedule: Schedule, form: Mapping[str, str]) -> dict[str, str]:
    """What the form says differently. The rest is left alone, also where the form cannot tell all of it."""
    shown = values_of(schedule)
    # Browsers end the lines of a textarea with CR LF.
    changed = {name: text for name, text in form.items() if text.replace("\r\n", "\n") != shown.get(name)}
    return changed | {"type": form.get("type", schedule.type)} if "payload" in changed else changed


def _seconds_text(duration: timedelta | None) -> str:
    if duration is None:
        return ""
    whole, rest = divmod(duration, timedelta(seconds=1))
    return f"{whole}.{rest.microseconds:06}".rstrip("0") if rest else str(whole)


def _moment_text(moment: datetime | None) -> str:
    """As ``<input type=datetime-local>`` takes it, in the viewer's zone."""
    return "" if moment is None else f"{timezone.localtime(moment):%Y-%m-%dT%H:%M:%S}"


def options_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The options of ``create_schedule`` and ``update_schedule``; whatever the form lacks is not changed.

    Raises InvalidSchedule, UnknownJobType, InvalidPayload.
    """
    read: dict[str, Callable[[str], Any]] = {
        "type": str.strip,
        "cron": str.strip,
        "every": lambda text: _duration("every", text),
        "timezone": str.strip,
        "jitter": lambda text: _duration("jitter", text) or timedelta(0),
        "start_at": lambda text: _moment("start_at", text),
        "end_at": lambda text: _moment("end_at", text),
        "queue": str.strip,
        "priority": _priority,
        "tenant": str.strip,
        "catch_up": str,
        "overlap": str,
        "expect_success_within": lambda text: _duration("expect_success_within", text),
        "expect": _expect,
    }
    options: dict[str, Any] = {name: reader(form[name]) for name, reader in read.items() if name in form}
    if "payload" in form:
        options["payload"] = _payload(options.get("type", ""), form["payload"])
    return options


def _duration(name: str, text: str) -> timedelta | None:
    text = text.strip()
    if not text:
        return None
    try:
        return timedelta(seconds=float(_short(text)))
    except (ValueError, OverflowError):
        raise InvalidSchedule(
            _("%(name)s: “%(text)s” is no number of seconds.") % {"name": name, "text": text[:40]}
        ) from None


def _short(text: str, most: int = MOST_DIGITS) -> str:
    if len(text) > most:
        raise ValueError(text)
    return text


def _moment(name: str, text: str) -> datetime | None:
    text = text.strip()
    if not text:
        return None
    try:
        instant = parse_datetime(text)
    except ValueError:
        instant = None
    if instant is None:
        raise InvalidSchedule(_("%(name)s: “%(text)s” is no date and time.") % {"name": name, "text": text[:40]})
    moment = timezone.make_aware(instant) if timezone.is_naive(instant) else instant
    if fault := moment_fault(name, moment):
        raise InvalidSchedule(fault)
    return moment


def _priority(text: str) -> int | None:
    text = text.strip()
    try:
        return int(_short(text)) if text else None
    except ValueError:
        raise InvalidSchedule(_("“%s” is no priority: it is a whole number.") % text[:40]) from None


def _expect(text: str) -> Any:
    """What ``schedule(expect=…)`` takes; it is left to that to refuse it."""
    if not text.strip():
        return {}
    try:
        return json.loads(_short(text, LONGEST_EXPECT))
    except (ValueError, RecursionError):
        raise InvalidSchedule(
            _('expect: this is not JSON of up to %s characters, such as {"rows_processed": {"at_least": 1}}.')
            % LONGEST_EXPECT
        ) from None


def _payload(type_name: str, text: str) -> dict[str, Any]:
    """The handler's arguments."""
    return registry.get(type_name).signature.decode(text or "{}")


def meaning_of(form: Mapping[str, str]) -> Meaning:
    """When a schedule with these values would fire, in words and slots, and whether it could be saved."""
    timing = _timing_of(form)
    return timing if timing.fault else replace(timing, fault=_fault_of(form))


def _fault_of(form: Mapping[str, str]) -> str:
    """Why it could not be saved; empty if it could. A name, a type or a payload may still be missing."""
    try:
        options = options_of(form if form.get("type") else _without_payload(form))
        type_name, payload = options.pop("type", "") or UNNAMED, options.pop("payload", None)
        spec = make_spec(form.get("name") or UNNAMED, type_name, payload, options)
        if payload is not None:
            spec.columns()
    except DjangoJobsError as fault:
        return told(fault)
    return ""


def _without_payload(form: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in form.items() if name != "payload"}


def _timing_of(form: Mapping[str, str]) -> Meaning:
    try:
        every = _duration("every", form.get("every", ""))
        cron, zone = form.get("cron", "").strip(), form.get("timezone", "").strip() or "UTC"
        if bool(cron) == bool(every):
            return Meaning(fault=_("Give either a cron expression or a number of seconds."))
        start, end = (_moment(name, form.get(name, "")) for name in ("start_at", "end_at"))
        return meaning(Timetable(cron=cron, every=every, timezone=zone, start_at=start, end_at=end))
    except InvalidSchedule as fault:
        return Meaning(fault=told(fault))


def meaning(timetable: Timetable, slots: int = SLOTS) -> Meaning:
    try:
        if timetable.every:
            words, warning = describe_interval(timetable.every), ""
        else:
            words, warning = describe(timetable.cron, timetable.timezone), day_warning(timetable.cron)
        previewed = preview_timetable(timetable, clock.now(), slots) if slots else []
        return Meaning(words=words, warning=warning, slots=previewed)
    except InvalidSchedule as fault:
        return Meaning(fault=told(fault))


def zones() -> list[str]:
    return sorted(available_timezones())
