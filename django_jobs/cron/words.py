"""Schedules in words, in the active language.

The common shapes get a sentence. Whatever has no short one is said by the fields' own text, so the words are
never wrong, at worst they are cron.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobs.cron.expression import Expression, read_expression
from django_jobs.cron.fields import Field
from django_jobs.cron.interval import validate_interval
from django_jobs.cron.zones import Change, validate_timezone

_MOST_ITEMS = 8
_MOST_TIMES = 6


def describe(expression: str, zone: str) -> str:
    """As in ``every day at 08:00, Asia/Kolkata``. Raises InvalidSchedule."""
    read, place = read_expression(expression), validate_timezone(zone)
    return _("%(schedule)s, %(zone)s") % {"schedule": _schedule(read), "zone": place}


def describe_interval(every: timedelta) -> str:
    """As in ``every 10 seconds``. Raises InvalidSchedule."""
    seconds = round(validate_interval(every).total_seconds())
    for unit, words in _UNITS:
        if seconds % unit == 0:
            return words(seconds // unit)
    return _every_seconds(seconds)


def day_warning(expression: str) -> str:
    """What to know if both day fields are restricted, else an empty string. Raises InvalidSchedule."""
    read = read_expression(expression)
    if not read.either_day:
        return ""
    return _(
        "Day of month and day of week are both restricted: cron then runs on each day that matches either of them, "
        "not only on days that match both."
    )


def change_note(change: Change) -> str:
    if change.forward:
        return _("clocks go forward at %(from)s to %(to)s") % _clocks(change)
    return _("clocks go back at %(from)s to %(to)s") % _clocks(change)


def moved_note(change: Change) -> str:
    return _("clocks go forward at %(from)s: runs at %(to)s") % _clocks(change)


def left_out_note(change: Change) -> str:
    return _("clocks go forward at %(from)s to %(to)s: what is between is left out") % _clocks(change)


def first_pass_note(change: Change) -> str:
    return _("clocks go back at %(from)s to %(to)s: runs once, the first time") % _clocks(change)


def both_passes_note(change: Change) -> str:
    return _("clocks go back at %(from)s to %(to)s: runs both times") % _clocks(change)


def _clocks(change: Change) -> dict[str, str]:
    one_day = change.wall_before.date() == change.wall_after.date()
    return {"from": _clock(change.wall_before, one_day), "to": _clock(change.wall_after, one_day)}


def _clock(wall: datetime, one_day: bool) -> str:
    return f"{wall:%H:%M}" if one_day else f"{wall:%Y-%m-%d %H:%M}"


# Intervals


def _every_seconds(number: int) -> str:
    return ngettext("every second", "every %(number)d seconds", number) % {"number": number}


def _every_minutes(number: int) -> str:
    return ngettext("every minute", "every %(number)d minutes", number) % {"number": number}


def _every_hours(number: int) -> str:
    return ngettext("every hour", "every %(number)d hours", number) % {"number": number}


def _every_days(number: int) -> str:
    return ngettext("every day", "every %(number)d days", number) % {"number": number}


_UNITS: tuple[tuple[int, Callable[[int], str]], ...] = (
    (86_400, _every_days),
    (3_600, _every_hours),
    (60, _every_minutes),
)


# Expressions


def _schedule(read: Expression) -> str:
    days = _days(read)
    if times := _times_of_day(read):
        return _("%(days)s at %(times)s") % {"days": days or _every_days(1), "times": times}
    return " ".join(filter(None, [_rhythm(read), days]))


def _times_of_day(read: Expression) -> str:
    """``08:00 and 18:00``; empty if they are too many, or a rhythm says it better."""
    times = [f"{hour:02}:{minute:02}" for hour in sorted(read.hour.values) for minute in sorted(read.minute.values)]
    if len(times) > _MOST_TIMES or (len(read.hour.values) > 2 and (_every_few_hours(read) or _from_to(read))):
        return ""
    return _joined(times)


def _rhythm(read: Expression) -> str:
    if read.hour.full and _step(read.minute, 60):
        return _minutes(read.minute)
    if read.hour.full:
        return _("every hour %(minutes)s") % {"minutes": _minutes(read.minute)}
    return _every_few_hours(read) or _from_to(read) or _minutes_of_hours(read)


def _every_few_hours(read: Expression) -> str:
    step = _step(read.hour, 24)
    if step < 2 or len(read.minute.values) > 1:
        return ""
    return _("%(hours)s %(minutes)s") % {"hours": _every_hours(step), "minutes": _minutes(read.minute)}


def _from_to(read: Expression) -> str:
    """``every 15 minutes from 09:00 to 17:45``; empty if there are pauses in between."""
    hours, minutes = sorted(read.hour.values), sorted(read.minute.values)
    step = 60 if len(minutes) == 1 else _step(read.minute, 60)
    if not step or hours != list(range(hours[0], hours[-1] + 1)):
        return ""
    words = {"first": f"{hours[0]:02}:{minutes[0]:02}", "last": f"{hours[-1]:02}:{minutes[-1]:02}"}
    every = _every_hours(1) if step == 60 else _every_minutes(step)
    return _("%(every)s from %(first)s to %(last)s") % {"every": every, **words}


def _minutes_of_hours(read: Expression) -> str:
    words = {"minutes": _minutes(read.minute), "hours": _listed(read.hour, str)}
    if len(read.hour.values) == 1:
        return _("%(minutes)s of hour %(hours)s") % words
    return _("%(minutes)s of the hours %(hours)s") % words


def _minutes(minute: Field) -> str:
    if step := _step(minute, 60):
        return _every_minutes(step)
    listed = _listed(minute, str)
    if len(minute.values) == 1:
        return _("at minute %(minute)s") % {"minute": listed}
    return _("at the minutes %(minutes)s") % {"minutes": listed}


def _step(field: Field, size: int) -> int:
    """The step, if the values start at 0 and repeat evenly round the clock, else 0."""
    step = size // len(field.values)
    return step if step < size and field.values == frozenset(range(0, size, step)) and size % step == 0 else 0


def _days(read: Expression) -> str:
    """Empty for every day of every month."""
    months = "" if read.month.full else _("in %(months)s") % {"months": _listed(read.month, _month)}
    return " ".join(filter(None, [_days_of_any_month(read), months]))


def _days_of_any_month(read: Expression) -> str:
    days, weekdays = _days_of_month(read.day), _weekday_names(read.weekday)
    if not weekdays:
        return days
    if not days:
        return _("on %(weekdays)s") % {"weekdays": weekdays}
    template = _("%(days)s or on %(weekdays)s") if read.either_day else _("%(days)s, if it is %(weekdays)s,")
    return template % {"days": days, "weekdays": weekdays}


def _days_of_month(day: Field) -> str:
    if day.full:
        return ""
    if day.last_day:
        return _("on the last day of the month")
    days = {"days": _listed(day, str)}
    if len(day.values) == 1:
        return _("on day %(days)s of the month") % days
    return _("on the days %(days)s of the month") % days


def _weekday_names(weekday: Field) -> str:
    if weekday.full:
        return ""
    from_monday = [day or 7 for day in weekday.values]
    nth = [_nth(day, number) for day, number in sorted(weekday.nth, key=lambda pair: (pair[1], pair[0]))]
    spans = _spans(from_monday, _weekday)
    return _joined([*spans, *nth]) if len(spans) + len(nth) <= _MOST_ITEMS else weekday.text


def _nth(day: int, number: int) -> str:
    forms = {
        1: _("the first %(weekday)s of the month"),
        2: _("the second %(weekday)s of the month"),
        3: _("the third %(weekday)s of the month"),
        4: _("the fourth %(weekday)s of the month"),
        5: _("the fifth %(weekday)s of the month"),
    }
    return forms[number] % {"weekday": _weekday(day)}


def _weekday(number: int) -> str:
    return str(WEEKDAYS[(number - 1) % 7])


def _month(number: int) -> str:
    return str(MONTHS[number])


def _listed(field: Field, name: Callable[[int], str]) -> str:
    """``1, 5 and 9 to 12``, or the field's own text if that would be long."""
    spans = _spans(field.values, name)
    return _joined(spans) if len(spans) <= _MOST_ITEMS else field.text


def _spans(values: Iterable[int], name: Callable[[int], str]) -> list[str]:
    """Three or more neighbours become ``first to last``."""
    spans: list[list[int]] = []
    for value in sorted(values):
        if spans and value == spans[-1][-1] + 1:
            spans[-1].append(value)
        else:
            spans.append([value])
    return [word for span in spans for word in _span(span, name)]


def _span(span: list[int], name: Callable[[int], str]) -> list[str]:
    if len(span) < 3:
        return [name(value) for value in span]
    return [_("%(first)s to %(last)s") % {"first": name(span[0]), "last": name(span[-1])}]


def _joined(words: Iterable[str]) -> str:
    *most, last = words
    return _("%(most)s and %(last)s") % {"most": ", ".join(most), "last": last} if most else last
