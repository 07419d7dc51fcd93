"""The grammar of one field: ``*``, numbers, names, lists, ascending ranges, steps, ``L`` and ``d#n``.

Everything else is refused, with a reason in one line that says what to write. Field text comes in upper case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

LAST_DAY = "L"

_DIGITS = re.compile(r"[0-9]+")
_WORD = re.compile(r"[A-Z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the five positions: ``low`` to ``high`` and the names that stand for numbers. ``name`` is for people."""

    name: object
    low: int
    high: int
    names: Mapping[str, int]


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

MINUTE = Kind(name=gettext_lazy("minute"), low=0, high=59, names={})
HOUR = Kind(name=gettext_lazy("hour"), low=0, high=23, names={})
DAY = Kind(name=gettext_lazy("day of month"), low=1, high=31, names={})
MONTH = Kind(
    name=gettext_lazy("month"), low=1, high=12, names={name: number for number, name in enumerate(_MONTHS, start=1)}
)
WEEKDAY = Kind(
    name=gettext_lazy("day of week"), low=0, high=7, names={name: number for number, name in enumerate(_WEEKDAYS)}
)
KINDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)


class Refused(ValueError):
    """The reason why a field is not taken, without the expression it stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """``values``: the numbers, with 0 for Sunday. ``nth``: (weekday, n) pairs. ``starred``: it counts as ``*``."""

    text: str
    values: frozenset[int]
    nth: frozenset[tuple[int, int]] = frozenset()
    full: bool = False
    last_day: bool = False

    @property
    def starred(self) -> bool:
        return self.full or self.text.startswith("*")


def read_field(kind: Kind, text: str) -> Field:
    """Raises Refused."""
    if kind is DAY and text == LAST_DAY:
        return Field(text=text, values=frozenset(), last_day=True)
    values: set[int] = set()
    nth: set[tuple[int, int]] = set()
    for item in text.split(","):
        if kind is WEEKDAY and "#" in item:
            nth.add(_nth_weekday(item))
        else:
            values.update(_numbers(kind, item))
    if kind is WEEKDAY:
        values = {number % 7 for number in values}
    full = len(values) == (7 if kind is WEEKDAY else kind.high - kind.low + 1)
    return Field(text=text, values=frozenset(values), nth=frozenset(nth), full=full)


def _nth_weekday(item: str) -> tuple[int, int]:
    day, _hash, number = item.partition("#")
    if not re.fullmatch("[1-5]", number):
        raise Refused(_("%(item)r: # takes a number from 1 to 5, as in 1#2 for the second Monday") % {"item": item})
    return _number(WEEKDAY, day, item) % 7, int(number)


def _numbers(kind: Kind, item: str) -> range:
    if not item:
        raise Refused(_("%(field)s has an empty list item; remove the comma") % {"field": kind.name})
    base, slash, step = item.partition("/")
    low, high = _span(kind, base, item, open_ended=bool(slash))
    values = range(low, high + 1)
    return values[:: _step(step, item, values)] if slash else values


def _span(kind: Kind, base: str, item: str, *, open_ended: bool) -> tuple[int, int]:
    if base == "*":
        return kind.low, kind.high
    start, dash, end = base.partition("-")
    low = _number(kind, start, item)
    if not dash:
        return low, kind.high if open_ended else low
    if "-" in end:
        raise Refused(_("%(item)r is two ranges in one; separate them by a comma") % {"item": item})
    high = 7 if end == "SUN" and low else _number(kind, end, item)
    if high < low:
        instead = {"item": item, "list": _unrolled(kind, low, high)}
        raise Refused(_("%(item)r is a reversed range; write %(list)s") % instead)
    return low, high


def _unrolled(kind: Kind, low: int, high: int) -> str:
    """A reversed range as a list of what it would mean: ``5,6,0,1``."""
    last = 6 if kind is WEEKDAY else kind.high
    if kind is WEEKDAY:
        return ",".join(str(number) for number in (*range(low, last + 1), *range(high + 1)))
    return f"{low}-{last},{kind.low}-{high}"


def _step(step: str, item: str, values: range) -> int:
    if not _DIGITS.fullmatch(step) or int(step) == 0:
        raise Refused(_("%(item)r: a step is a number from 1 in the digits 0 to 9") % {"item": item})
    if int(step) >= len(values):
        detail = {"item": item, "count": len(values), "first": values[0]}
        raise Refused(_("%(item)r cannot repeat: its step is not below the %(count)d values; write %(first)d") % detail)
    return int(step)


def _number(kind: Kind, text: str, item: str) -> int:
    if _DIGITS.fullmatch(text):
        if kind.low <= int(text) <= kind.high:
            return int(text)
        limits = {"field": kind.name, "number": text, "low": kind.low, "high": kind.high}
        raise Refused(_("%(field)s %(number)s is not between %(low)d and %(high)d") % limits)
    if text in kind.names:
        return kind.names[text]
    raise Refused(_why_not_a_number(kind, text) % {"item": item, "field": kind.name, "text": text, "name": text[:3]})


def _why_not_a_number(kind: Kind, text: str) -> str:
    match text:
        case "":
            return _("%(item)r: a value is missing in %(field)s")
        case "?":
            return _("? is not supported; write *")
        case _ if _WORD.fullmatch(text) and text in {*MONTH.names, *WEEKDAY.names}:
            return _("the name %(text)s is in the wrong field: %(field)s")
        case _ if text.startswith("*"):
            return _("%(item)r is not a field; write * or */n")
        case _ if kind.names and _WORD.fullmatch(text) and text[:3] in kind.names:
            return _("%(item)r is not a name; names have three letters: %(name)s")
        case _ if re.match(r"[HR](\(|$)", text):
            return _("%(item)r: the hash forms H and R are not supported; write a number, and spread runs by jitter")
        case _ if re.fullmatch(r"[0-9]*(L|W|LW)[0-9]*", text):
            return _("%(item)r is not supported; L stands alone in day of month and means its last day")
    if kind.names:
        return _("%(item)r: %(field)s takes numbers in the digits 0 to 9 or a name of three letters")
    return _("%(item)r: %(field)s takes numbers in the digits 0 to 9")
