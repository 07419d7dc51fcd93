"""Cron expressions, time zones and daylight saving: when a schedule is due, and how to say so.

Guarantees: what ``validate`` accepts fires within 400 years; ``next_slots`` answers with instants in UTC,
strictly later than the base and in order, by rules that hold for every zone and every change of its clock. The
answer depends on the arguments and the zone data alone: not on a clock, the process's zone or Django's.

    fields      the grammar of one field
    expression  five of them, checked; croniter proposes wall-clock times
    zones       what a zone makes of a wall-clock time
    slots       which of those times run, and when
    interval    schedules without a wall clock
    words       the same in words
    preview     the next slots, with what the clock does to them
"""

from django_jobs.cron.expression import validate
from django_jobs.cron.interval import next_interval_slots, validate_interval
from django_jobs.cron.preview import PreviewedSlot, preview
from django_jobs.cron.slots import next_slots
from django_jobs.cron.words import day_warning, describe, describe_interval
from django_jobs.cron.zones import validate_timezone

__all__ = [
    "PreviewedSlot",
    "day_warning",
    "describe",
    "describe_interval",
    "next_interval_slots",
    "next_slots",
    "preview",
    "validate",
    "validate_interval",
    "validate_timezone",
]
