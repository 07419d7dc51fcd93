"""Five checked fields, and the wall-clock times that match them.

croniter proposes those times, without any zone. It gets numbers only, and one field of days at a time: its own
reading of names, of ``L``, of ``#`` beside other days and of ``*/n`` as a day differs from ours.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from croniter import CroniterBadDateError, croniter
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobs.cron.fields import KINDS, Field, Refused, read_field
from django_jobs.exceptions import InvalidSchedule

LONGEST = 255
YEARS_AHEAD = 400  # after which the calendar repeats
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_ANY_CYCLE = datetime(2000, 1, 1)  # noqa: DTZ001
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """``proposers`` match whatever any one of them matches."""

    text: str
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    proposers: tuple[croniter, ...]

    @property
    def is_wildcard(self) -> bool:
        """It follows the clock as it runs, and not a time of the day."""
        return self.minute.starred or self.hour.starred

    @property
    def either_day(self) -> bool:
        """Both day fields are restricted, so one of them is enough."""
        return not (self.day.starred or self.weekday.starred)

    def propose(self, wall: datetime) -> datetime:
        """The first wall-clock minute after ``wall`` that matches; both are naive."""
        return min(_next(proposer, wall) for proposer in self.proposers)


def validate(expression: str) -> str:
    """The expression as it is stored: five fields with one space between, names in upper case, no alias.

    Raises InvalidSchedule with a reason in one line.
    """
    return read_expression(expression).text


@lru_cache(maxsize=4096)
def read_expression(expression: str) -> Expression:
    """Raises InvalidSchedule."""
    try:
        return _checked(_texts(expression))
    except Refused as reason:
        told = {"expression": _shown(expression), "reason": reason}
        raise InvalidSchedule(_("The cron expression %(expression)s is refused: %(reason)s.") % told) from None


def _shown(expression: object) -> str:
    shown = ascii(expression)
    return shown if len(shown) <= LONGEST else f"{shown[:60]}…"


def _texts(expression: str) -> list[str]:
    if not isinstance(expression, str):
        raise Refused(_("it must be a string"))
    if len(expression) > LONGEST:
        lengths = {"length": len(expression), "longest": LONGEST}
        raise Refused(_("it has %(length)d characters; the longest has %(longest)d") % lengths)
    if _CONTROL.search(expression):
        raise Refused(_("it contains a control character; separate the fields by spaces"))
    texts = _unaliased(expression.strip(" \t")).upper().replace("\t", " ").split(" ")
    texts = [text for text in texts if text]
    if not texts:
        raise Refused(_("it is empty; * * * * * is every minute"))
    return _five(texts)


def _unaliased(text: str) -> str:
    if text == "@reboot":
        raise Refused(_("@reboot has no meaning here: nothing of a schedule depends on a start"))
    if text in ALIASES:
        return ALIASES[text]
    meant = f"@{text.lower().lstrip('@')}"
    if meant in ALIASES:
        raise Refused(_("this word is unknown; write %s") % meant)
    if text.startswith("@"):
        raise Refused(_("this alias is unknown; there are %s") % ", ".join(ALIASES))
    return text


def _five(texts: list[str]) -> list[str]:
    if "=" in texts[0]:
        raise Refused(_("the time zone has a field of its own; remove it from the expression"))
    if any(text.startswith("#") for text in texts):
        raise Refused(_("comments are not allowed; remove what begins with #"))
    if len(texts) == len(KINDS):
        return texts
    if len(texts) == len(KINDS) + 1:
        raise Refused(_("it has 6 fields and needs 5; for seconds use an interval, as in every=timedelta(seconds=10)"))
    raise Refused(
        ngettext(
            "it has %(count)d field and needs 5: minute, hour, day of month, month, day of week",
            "it has %(count)d fields and needs 5: minute, hour, day of month, month, day of week",
            len(texts),
        )
        % {"count": len(texts)}
    )


def _checked(texts: list[str]) -> Expression:
    minute, hour, day, month, weekday = (read_field(kind, text) for kind, text in zip(KINDS, texts, strict=True))
    times = f"{_numbers(minute)} {_numbers(hour)}"
    forms = [f"{times} {on_day} {_numbers(month)} {on_weekday}" for on_day, on_weekday in _days(day, weekday)]
    proposers = tuple(proposer for proposer in map(_proposer, forms) if proposer is not None)
    if not proposers:
        raise Refused(_("it never fires: no such date exists within %d years") % YEARS_AHEAD)
    return Expression(
        text=" ".join(texts),
        minute=minute,
        hour=hour,
        day=day,
        month=month,
        weekday=weekday,
        proposers=proposers,
    )


def _days(day: Field, weekday: Field) -> list[tuple[str, str]]:
    """Pairs of a day of month and a day of week, each a date on which both match."""
    on_day, on_weekdays = ("L" if day.last_day else _numbers(day)), _weekday_forms(weekday)
    if day.starred or weekday.starred:
        return [(on_day, on_weekday) for on_weekday in on_weekdays]
    return [(on_day, "*"), *(("*", on_weekday) for on_weekday in on_weekdays)]


def _weekday_forms(weekday: Field) -> list[str]:
    if weekday.full:
        return ["*"]
    nth = ",".join(f"{day}#{number}" for day, number in sorted(weekday.nth))
    return [form for form in (_numbers(weekday), nth) if form]


def _numbers(field: Field) -> str:
    return "*" if field.full else ",".join(map(str, sorted(field.values)))


def _proposer(form: str) -> croniter | None:
    """None if no date matches."""
    proposer = croniter(form, _ANY_CYCLE, day_or=False, max_years_between_matches=YEARS_AHEAD)
    try:
        _next(proposer, _ANY_CYCLE)
    except CroniterBadDateError:
        return None
    return proposer


def _next(proposer: croniter, wall: datetime) -> datetime:
    """On a copy, because a croniter keeps its place and threads share the cached ones."""
    found: datetime = copy(proposer).get_next(datetime, start_time=wall)
    return found
