"""Says what is wrong with a payload: the path of the field, such as ``items[2].name``, and the reason.

Guarantees: no message shows a value, since a payload may hold secrets; only paths, types and sizes. Nothing
here raises for a strange value, except RecursionError where the caller's own stack is all but used up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from math import isfinite
from typing import Any

from django.utils.functional import Promise
from pydantic import ValidationError

from django_jobs.payload.comparison import DEPTH, items_of
from django_jobs.payload.path import path_of

_SHOWN_ERRORS = 5
_MISSING = object()


def refusal(error: ValidationError, payload: object, names: Iterable[str] = ()) -> str:
    """All that ``error`` says, at most five reasons, without a value in it."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    reasons = [_reason(dict(item), payload, list(names)) for item in errors[:_SHOWN_ERRORS]]
    if len(errors) > _SHOWN_ERRORS:
        reasons.append(f"and {len(errors) - _SHOWN_ERRORS} more")
    return "; ".join(reasons)


def _reason(item: dict[str, Any], payload: object, names: list[str]) -> str:
    location, path = item["loc"], path_of(item["loc"])
    match item["type"]:
        case "missing":
            return f"{path} is missing"
        case "extra_forbidden" | "unexpected_keyword_argument" if len(location) == 1:
            near = get_close_matches(str(location[0]), names, n=1)
            return f"{path} is not a field" + (f"; did you mean {near[0]}?" if near else "")
        case "extra_forbidden" | "unexpected_keyword_argument":
            return f"{path} is not a field"
        case kind if kind.startswith("recursion"):
            return f"{path} contains itself or is nested too deeply"
    message = item["msg"][:1].lower() + item["msg"][1:]
    return f"{path}: {message}{_got(item['type'], _value_at(payload, location))}"


def _got(error_type: str, value: object) -> str:
    is_type_error = error_type.endswith("_type") or error_type == "is_instance_of"
    return f", not {_named(value)}" if is_type_error and value is not _MISSING else ""


def _named(value: object) -> str:
    if isinstance(value, Promise):
        return "a lazy translation; translate it in the handler, or pass str() of it"
    if is_model_instance(value):
        return f"an instance of the model {type(value).__name__}; pass its primary key"
    return type(value).__name__


def is_model_instance(value: object) -> bool:
    """Whether ``value`` is a Django model's instance, told without importing models."""
    return hasattr(type(value), "_meta") and hasattr(type(value), "pk")


def _value_at(payload: object, location: Sequence[int | str]) -> object:
    """The value a location points at, or _MISSING: locations also name branches of unions and keys."""
    value = payload
    for part in location:
        try:
            value = value[part] if isinstance(value, dict | list | tuple) else getattr(value, str(part))  # type: ignore[index]
        except (AttributeError, LookupError, TypeError):
            return _MISSING
    return value


def unstorable(value: object, location: tuple[Any, ...] = ()) -> str | None:
    """The first thing in ``value`` that JSON in PostgreSQL cannot hold, with its path."""
    if len(location) > DEPTH:
        return f"{path_of(location)} is nested more than {DEPTH} levels deep, or contains itself"
    if isinstance(value, str):
        return _unstorable_text(value, path_of(location))
    if isinstance(value, Promise) or is_model_instance(value):
        return f"{path_of(location)} is {_named(value)}"
    if _is_infinite(value):
        return f"{path_of(location)} is not a finite number, which JSON cannot hold"
    for part, item in items_of(value):
        if isinstance(part, str) and (fault := _unstorable_text(part, f"a key of {path_of(location)}")):
            return fault
        if fault := unstorable(item, (*location, part)):
            return fault
    return None


def _is_infinite(value: object) -> bool:
    return isinstance(value, float | Decimal) and not isfinite(value)


def _unstorable_text(text: str, path: str) -> str | None:
    if "\0" in text:
        return f"{path} contains U+0000, which PostgreSQL cannot store"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"{path} contains the lone surrogate U+{ord(text[error.start]):04X}, which is not text"
    return None
