"""The next slots, and beside each what the clocks do to it on a day when they change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django_jobs.cron import words
from django_jobs.cron.expression import Expression, read_expression
from django_jobs.cron.slots import LONGEST_GAP, next_slots
from django_jobs.cron.zones import Change, change_between, read_wall, read_zone, wall_at

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedSlot:
    """``at``: the slot, in UTC. ``local``: the same instant in the schedule's zone. ``note``: in words, or empty."""

    at: datetime
    local: datetime
    note: str


def preview(expression: str, zone: str, after: datetime, count: int) -> list[PreviewedSlot]:
    """``next_slots`` with notes on days when the clocks change. Raises as that does."""
    read, place = read_expression(expression), read_zone(zone)
    return [
        PreviewedSlot(at=slot, local=slot.astimezone(place), note=_note(read, place, slot))
        for slot in next_slots(expression, zone, after, count)
    ]


def _note(read: Expression, zone: ZoneInfo, slot: datetime) -> str:
    change = _change_on(zone, wall_at(zone, slot).date())
    if change is None:
        return ""
    if change.forward:
        return _note_on_gap(read, change, slot)
    if len(read_wall(zone, wall_at(zone, slot)).instants) == 1:
        return words.change_note(change)
    return words.both_passes_note(change) if read.is_wildcard else words.first_pass_note(change)


def _note_on_gap(read: Expression, change: Change, slot: datetime) -> str:
    left_out = read.propose(change.wall_before - timedelta.resolution) < change.wall_after
    if not left_out:
        return words.change_note(change)
    if read.is_wildcard or change.shift > LONGEST_GAP:
        return words.left_out_note(change)
    return words.moved_note(change) if slot == change.at else words.change_note(change)


def _change_on(zone: ZoneInfo, day: date) -> Change | None:
    """The change on that local day; one at midnight belongs to the day that begins."""
    start, end = (read_wall(zone, datetime.combine(midnight, time())) for midnight in (day, day + _DAY))
    return change_between(zone, start.reached - _SECOND, end.reached - _SECOND)
