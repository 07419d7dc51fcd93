"""Enqueues the due slots of locked schedules, records what became of each slot, and moves the schedules on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.context import JITTER, SCHEDULE, SLOT
from django_jobs.engines import statements
from django_jobs.engines.values import NewJob
from django_jobs.ids import uuid7
from django_jobs.models import Job, Overlap, Schedule, ScheduleSlot, SlotOutcome
from django_jobs.registry import registry

from .announcing import announce_after_commit
from .enqueue import new_job
from .enqueued import EnqueuedJob
from .options import Options
from .schedule_spec import encode_stored, timing_fault
from .timetable import MOMENT, Due, Timetable, due_slots, jitter_of
from .transactions import jobs_connection, wake_after_commit

MOST_RECENT = 100

SlotKey = tuple[str, datetime]


@dataclass(frozen=True, slots=True)
class _Firing:
    """What is to be done about one schedule. ``job``: without id and time."""

    schedule: Schedule
    due: Due
    job: NewJob

    @property
    def slots(self) -> list[datetime]:
        return [*([self.due.missed] if self.due.missed else []), *self.due.fire]


def fire_slots(schedules: Sequence[Schedule], now: datetime, set_aside: Callable[[str, str], None]) -> None:
    """The caller has locked the rows, all due at ``now``. ``set_aside`` is told of those this build cannot fire."""
    firings = list(_firings(schedules, now, set_aside))
    if not firings:
        return
    jobs: list[NewJob] = []
    taken = _taken(firings)
    records = [record for firing in firings for record in _records(firing, taken, jobs)]
    if jobs:
        _enqueue(jobs)
    ScheduleSlot.objects.using(get_settings().database).bulk_create(records)
    _move_on(firings, {record.schedule for record in records if record.job_id})


def _firings(schedules: Sequence[Schedule], now: datetime, set_aside: Callable[[str, str], None]) -> Iterator[_Firing]:
    """Before anything is written, so that a schedule that cannot be fired costs nothing of the others."""
    for schedule in schedules:
        try:
            yield _Firing(schedule, due_slots(schedule, now), job_of(schedule))
        except Exception as error:  # noqa: BLE001 - set_aside logs it
            set_aside(schedule.pk, f"{type(error).__name__}: {error}")


def job_of(schedule: Schedule) -> NewJob:
    """The job of a schedule as this build enqueues it. Raises EnqueueError if it cannot."""
    job_type = registry.get(schedule.type)
    options = Options(
        queue=schedule.queue or None,
        priority=schedule.priority,
        tenant=schedule.tenant,
        max_attempts=schedule.max_attempts,
    )
    return new_job(job_type, encode_stored(job_type, schedule.payload), options, get_settings())


def context_of(schedule: Schedule) -> dict[str, str]:
    """What its jobs know of it, besides the slot."""
    jitter = {JITTER: str(schedule.jitter.total_seconds())} if schedule.jitter else {}
    return {SCHEDULE: schedule.pk} | jitter


def _taken(firings: Sequence[_Firing]) -> set[SlotKey]:
    """Slots on record: a schedule that was deleted and made again, or set back, does not fire them again."""
    names = [firing.schedule.pk for firing in firings]
    slots = {slot for firing in firings for slot in firing.slots}
    recorded = ScheduleSlot.objects.using(get_settings().database).filter(schedule__in=names, slot__in=slots)
    return set(recorded.values_list("schedule", "slot"))


def _records(firing: _Firing, taken: Collection[SlotKey], jobs: list[NewJob]) -> Iterator[ScheduleSlot]:
    """What becomes of the schedule's slots; ``jobs`` receives what is to be enqueued."""
    schedule, due = firing.schedule, firing.due
    if due.missed and (schedule.pk, due.missed) not in taken:
        until = due.fire[0] if due.fire else due.next
        yield _record(schedule, due.missed, SlotOutcome.SKIPPED_CATCH_UP, until=until)
    alone = schedule.overlap == Overlap.SKIP
    busy = alone and bool(due.fire) and _has_unfinished_job(schedule)
    for slot in due.fire:
        if (schedule.pk, slot) in taken:
            continue
        if busy:
            yield _record(schedule, slot, SlotOutcome.SKIPPED_OVERLAP)
        else:
            jobs.append(_job_for(firing, slot))
            yield _record(schedule, slot, SlotOutcome.FIRED, job_id=jobs[-1].id)
            busy = alone


def _record(schedule: Schedule, slot: datetime, outcome: SlotOutcome, **more: Any) -> ScheduleSlot:
    return ScheduleSlot(schedule=schedule.pk, slot=slot, outcome=outcome, **more)


def record_run_now(schedule: Schedule, now: datetime, job_id: UUID) -> None:
    """At a moment that is no slot of the timetable and is not taken, so that no slot finds its place taken."""
    rows = ScheduleSlot.objects.using(get_settings().database)
    values = {"outcome": SlotOutcome.RUN_NOW, "job_id": job_id}
    moment, created = now, False
    while not created:
        if not _is_slot(schedule, moment):
            _, created = rows.get_or_create(schedule=schedule.pk, slot=moment, defaults=values)
        moment += MOMENT


def _is_slot(schedule: Schedule, moment: datetime) -> bool:
    if timing_fault(schedule.cron, schedule.every, schedule.timezone):
        return False
    return Timetable.of(schedule).first_after(moment - MOMENT) == moment


def _has_unfinished_job(schedule: Schedule) -> bool:
    alias = get_settings().database
    slots = ScheduleSlot.objects.using(alias).filter(schedule=schedule.pk, job_id__isnull=False).order_by("-slot")
    return Job.objects.using(alias).filter(pk__in=slots.values("job_id")[:MOST_RECENT]).exists()


def _job_for(firing: _Firing, slot: datetime) -> NewJob:
    schedule = firing.schedule
    run_at = slot + jitter_of(schedule.pk, slot, schedule.jitter)
    context = json.dumps(context_of(schedule) | {SLOT: slot.isoformat()})
    return firing.job._replace(id=uuid7(), run_at=run_at, context=context)


def _enqueue(jobs: Sequence[NewJob]) -> None:
    connection = jobs_connection()
    placed = statements(connection.alias).enqueue_each(connection, jobs)
    for queue in {job.queue for job, place in zip(jobs, placed, strict=True) if place.asleep}:
        wake_after_commit(connection, queue)
    for job, place in zip(jobs, placed, strict=True):
        enqueued = EnqueuedJob(job.id, place.status)
        announce_after_commit(connection, registry.get(job.type), job.queue, [enqueued])


def _move_on(firings: Sequence[_Firing], enqueued: Collection[str]) -> None:
    """In one statement for all that go from the same slot to the same."""
    moves: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for firing in firings:
        name = firing.schedule.pk
        moves[firing.due.next, firing.slots[-1], name in enqueued].append(name)
    for (following, last_slot, has_run), names in moves.items():
        values = {"next_run_at": following, "last_slot": last_slot} | ({"last_run_at": Now()} if has_run else {})
        Schedule.objects.using(get_settings().database).filter(pk__in=names).update(**values)
