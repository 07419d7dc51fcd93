"""Schedules at run time: made, changed and asked about. A schedule names a registered type, never an import path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from django_jobs import cron as cron_rules
from django_jobs.conf import did_you_mean, get_settings
from django_jobs.cron import PreviewedSlot
from django_jobs.engines import statements
from django_jobs.exceptions import InvalidSchedule, ScheduleNotFound
from django_jobs.ids import uuid7
from django_jobs.models import Schedule, SetBy
from django_jobs.models.schedule import TIMING
from django_jobs.registry import registry

from .announcing import announce_after_commit
from .audit import Actor, audit
from .enqueued import EnqueuedJob
from .payload_view import shown_payload
from .planning import plan_from_now
from .schedule_spec import SPEC_FIELDS, ScheduleSpec, make_spec, moment_fault, type_name
from .slots import context_of, job_of, record_run_now
from .timetable import MOMENT, Timetable
from .transactions import enqueueing_connection, wake_after_commit

MOST_PREVIEWED = 100
AUDITED = tuple(field for field in SPEC_FIELDS if field not in ("name", "payload"))


def create_schedule(
    name: str, *, type: Any, payload: Mapping[str, Any] | None = None, actor: Actor | None = None, **options: Any
) -> Schedule:
    """Make a schedule; its first slot is the next one from now. ``options`` are those of ``schedule()``.

    Raises InvalidSchedule, also if the name is taken, UnknownJobType and InvalidPayload.
    """
    spec = make_spec(name, type, payload, options)
    columns = spec.columns()
    alias = get_settings().database
    with transaction.atomic(using=alias):
        try:
            with transaction.atomic(using=alias):
                Schedule(pk=name, enabled_by=SetBy.OPERATOR, **columns).save(using=alias, force_insert=True)
        except IntegrityError:
            raise InvalidSchedule(_("Schedule %r is there already: change it by update_schedule().") % name) from None
        made = _planned(name)
        audit(actor, "create", "schedule", name, after=_audited(made))
        return made


def update_schedule(name: str, /, *, actor: Actor | None = None, **changes: Any) -> Schedule:
    """Change a schedule that is not declared in code. If its times change, it starts from now.

    Raises ScheduleNotFound, InvalidSchedule, UnknownJobType and InvalidPayload.
    """
    with transaction.atomic(using=get_settings().database):
        row = _locked(name)
        if row.declared_in_code:
            raise InvalidSchedule(
                _(
                    "Schedule %r is declared in code, which would win at the next deploy: change it there. "
                    "enable_schedule() and disable_schedule() hold."
                )
                % name
            )
        columns = _changed_spec(row, changes).columns()
        by = {"enabled_by": SetBy.OPERATOR} if "enabled" in changes else {}
        _rows(name).update(updated_at=Now(), **by, **columns)
        is_moved = any(columns[field] != getattr(row, field) for field in TIMING)
        changed = _planned(name) if is_moved else get_schedule(name)
        audit(actor, "change", "schedule", name, before=_audited(row), after=_audited(changed))
        return changed


def _changed_spec(row: Schedule, changes: dict[str, Any]) -> ScheduleSpec:
    """The stored payload becomes arguments again, unless others are given."""
    kept = {field: getattr(row, field) for field in SPEC_FIELDS if field not in ("name", "type", "payload")}
    type_ = type_name(changes.pop("type", row.type))
    payload = changes.pop("payload", None)
    if payload is None:
        payload = registry.get(type_).signature.decode(json.dumps(row.payload))
    return make_spec(row.pk, type_, payload, kept | changes)


def delete_schedule(name: str, *, actor: Actor | None = None) -> None:
    """Jobs it has enqueued stay, and so does the record of its slots. Raises ScheduleNotFound, and InvalidSchedule for
    one that is declared in code.
    """
    with transaction.atomic(using=get_settings().database):
        row = _locked(name)
        if row.declared_in_code:
            raise InvalidSchedule(
                _(
                    "Schedule %r is declared in code, which would make it again: remove it there, or call "
                    "disable_schedule()."
                )
                % name
            )
        _rows(name).delete()
        audit(actor, "delete", "schedule", name, before=_audited(row))


def enable_schedule(name: str, *, actor: Actor | None = None) -> Schedule:
    """Fire again, from the next slot on; slots that have passed meanwhile do not count. Raises ScheduleNotFound."""
    return _set_enabled(name, actor, "resume", enabled=True)


def disable_schedule(name: str, *, actor: Actor | None = None) -> Schedule:
    """Fire no more, whatever the code says. Jobs that are enqueued stay. Raises ScheduleNotFound."""
    return _set_enabled(name, actor, "pause", enabled=False)


def _set_enabled(name: str, actor: Actor | None, action: str, *, enabled: bool) -> Schedule:
    with transaction.atomic(using=get_settings().database):
        was_enabled = _locked(name).enabled
        _rows(name).update(enabled=enabled, enabled_by=SetBy.OPERATOR, updated_at=Now())
        audit(actor, action, "schedule", name, before={"enabled": was_enabled}, after={"enabled": enabled})
        return get_schedule(name) if enabled is was_enabled else _planned(name)


def run_schedule_now(name: str, *, actor: Actor | None = None) -> EnqueuedJob:
    """Enqueue the schedule's job once more, now and for no slot: ``run.scheduled_for`` is None. In the caller's
    transaction, also if the schedule is disabled. Counts as a job of the schedule: for what it expects, and for a slot
    that may not overlap. Raises ScheduleNotFound and EnqueueError.
    """
    connection = enqueueing_connection()
    schedule = _found(name, _rows(name).annotate(now=Now()).first())
    job = job_of(schedule)._replace(id=uuid7(), context=json.dumps(context_of(schedule)))
    with transaction.atomic(using=connection.alias):
        placed = statements(connection.alias).enqueue(connection, job)
        assert placed is not None  # noqa: S101 - only a key can be taken
        record_run_now(schedule, schedule.now, job.id)  # type: ignore[attr-defined]
        audit(actor, "run_now", "schedule", name, after={"job": str(job.id)})
        if placed.asleep:
            wake_after_commit(connection, job.queue)
        enqueued = EnqueuedJob(job.id, placed.status)
        announce_after_commit(connection, registry.get(job.type), job.queue, [enqueued])
    return enqueued


def get_schedule(name: str) -> Schedule:
    """Its row, to be read. Raises ScheduleNotFound."""
    return _found(name, _rows(name).first())


def list_schedules() -> list[Schedule]:
    """All rows, by name."""
    return list(Schedule.objects.using(get_settings().database).order_by("pk"))


def preview_schedule(name: str, count: int = 5) -> list[PreviewedSlot]:
    """The next ``count`` slots, up to 100, with a note where the clocks change; what it would fire, if it is disabled.

    Raises ScheduleNotFound and InvalidSchedule.
    """
    if not 1 <= count <= MOST_PREVIEWED:
        told = {"most": MOST_PREVIEWED, "count": count}
        raise InvalidSchedule(_("A preview has 1 to %(most)d slots, not %(count)r.") % told)
    row = _found(name, _rows(name).annotate(now=Now()).first())
    now: datetime = row.now  # type: ignore[attr-defined]
    return preview_timetable(Timetable.of(row), now, count)


def preview_timetable(timetable: Timetable, now: datetime, count: int) -> list[PreviewedSlot]:
    """Raises InvalidSchedule."""
    if timetable.start_at is not None and (fault := moment_fault("start_at", timetable.start_at)):
        raise InvalidSchedule(fault)
    slots = timetable.after(now, count)
    if timetable.every is None:
        base = slots[0] - MOMENT if slots else now
        return cron_rules.preview(timetable.cron, timetable.timezone, base, len(slots))
    zone = ZoneInfo(cron_rules.validate_timezone(timetable.timezone))
    return [PreviewedSlot(at=slot, local=slot.astimezone(zone), note="") for slot in slots]


def _audited(row: Schedule) -> dict[str, Any]:
    """The columns that say something, as text, and the payload as people may see it."""
    columns = {name: str(value) for name in AUDITED if (value := getattr(row, name)) not in (None, "", {})}
    return columns | {"payload": shown_payload(row.type, row.payload)}


def _rows(name: str) -> QuerySet[Schedule]:
    return Schedule.objects.using(get_settings().database).filter(pk=name)


def _locked(name: str) -> Schedule:
    return _found(name, _rows(name).select_for_update().first())


def _planned(name: str) -> Schedule:
    row = _rows(name).annotate(now=Now()).get()
    plan_from_now([row], row.now)
    return get_schedule(name)


def _found(name: str, row: Schedule | None) -> Schedule:
    if row is None:
        names = Schedule.objects.using(get_settings().database).values_list("pk", flat=True)
        told = {"name": name, "hint": did_you_mean(name, names)}
        raise ScheduleNotFound(_("No schedule is called %(name)r.%(hint)s") % told)
    return row
