"""Whether what came back from JSON is what was sent: equal, and of the same types all the way down.

Guarantees: 1, 1.0 and True are three values. A subclass of datetime or date stands for the same instant or
day, an instant is the same in any time zone class of the same offset. Nesting deeper than ``DEPTH`` levels
counts as a difference, so cycles end.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import repeat
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from django_jobs.payload.path import path_of

DEPTH = 100
"""Levels of nesting. pydantic's reader stops at 200, json's at the interpreter's recursion limit."""

_MISSING = object()
_ATOMS = frozenset({str, int, float, bool, type(None), bytes, UUID, Decimal, date, time, timedelta})
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)


def is_same(sent: Any, back: Any, levels: int = DEPTH) -> bool:
    """The quick answer for the usual types; False where only ``difference`` can tell."""
    kind: Any = type(sent)
    if kind is not type(back) or not levels:
        return False
    if kind in _ATOMS:
        return bool(sent == back)
    if kind is dict:
        return _is_same_dict(sent, back, levels - 1)
    if kind is list or kind is tuple:
        return len(sent) == len(back) and all(map(is_same, sent, back, repeat(levels - 1)))
    names = getattr(kind, "__dataclass_fields__", ())
    return bool(names) and all(
        is_same(getattr(sent, name, None), getattr(back, name, None), levels - 1) for name in names
    )


def _is_same_dict(sent: dict[Any, Any], back: dict[Any, Any], levels: int) -> bool:
    if len(sent) != len(back):
        return False
    for key, item in sent.items():
        if type(key) is not str or key not in back or not is_same(item, back[key], levels):
            return False
    return True


def difference(sent: object, back: object, location: tuple[Any, ...]) -> str | None:
    """The first place where ``back`` is not equal to ``sent`` or not of its type."""
    if len(location) > DEPTH:
        return f"{path_of(location)} is nested more than {DEPTH} levels deep, or contains itself"
    if _kept_type(sent) is not _kept_type(back):
        return f"{path_of(location)} would come back as {type(back).__name__}, not {type(sent).__name__}"
    if isinstance(sent, _SETS):
        return None if _typed(sent) == _typed(back) else _unequal(location)
    ours, theirs = dict(items_of(sent)), dict(items_of(back))
    if not ours and not theirs:
        return None if _is_equal(sent, back) else _unequal(location)
    if _typed(ours) != _typed(theirs):
        return f"the keys of {path_of(location)} would not come back as they are"
    faults = (difference(item, theirs[part], (*location, part)) for part, item in ours.items())
    return next(filter(None, faults), None)


def _kept_type(value: object) -> type:
    """The type that has to come back; a subclass of datetime or date stands for the same instant."""
    return next((kind for kind in (datetime, date) if isinstance(value, kind)), type(value))


def _typed(items: Any) -> set[tuple[type, object]]:
    """Told apart by type too, since 1 == True."""
    return {(type(item), item) for item in items}


def _is_equal(sent: Any, back: Any) -> bool:
    if isinstance(sent, datetime):
        return (sent.replace(tzinfo=None, fold=0), sent.utcoffset()) == (
            back.replace(tzinfo=None, fold=0),
            back.utcoffset(),
        ) or bool(sent == back)
    return bool(sent == back)


def _unequal(location: tuple[Any, ...]) -> str:
    return f"{path_of(location)} would not come back equal"


def items_of(value: object) -> Iterator[tuple[Any, object]]:
    """What a container, dataclass or pydantic model holds, each with its key, index or name."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, (*_SEQUENCES, *_SETS)):
        yield from enumerate(value)
    else:
        yield from _attributes(value).items()


def _attributes(value: object) -> dict[str, object]:
    """The fields of a dataclass or a pydantic model; empty for anything else."""
    if isinstance(value, BaseModel):
        return {**value.__dict__, **(value.__pydantic_extra__ or {})}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, _MISSING) for field in dataclasses.fields(value)}
    return {}
