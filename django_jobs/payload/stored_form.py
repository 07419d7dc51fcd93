"""How a payload field's type is stored, and which types are known to come back as they were.

pydantic's own JSON form is right for most types. Ours replaces it where it loses something: a set has no
order (and so no stable hash), an offset of a local mean time has seconds, a time of day can have a zone
without an offset, and a secret is masked.

Guarantees: a field that ``is_exact`` accepts comes back equal and of the annotated type, so that encoding it
needs no second look. Every other field is decoded again and compared when it is encoded.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from pydantic import ConfigDict, PlainSerializer, SecretBytes, SecretStr, WrapSerializer

CONFIG = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    hide_input_in_errors=True,
    ser_json_bytes="base64",
    val_json_bytes="base64",
)

_MINUTE = timedelta(minutes=1)
_PLAIN = frozenset({"str", "int", "float", "bool", "none", "bytes", "uuid", "date", "timedelta", "decimal"})
_PLAIN_KEYS = frozenset({"str", "int", "uuid", "date", "decimal"})
_GENERICS = (list, tuple, set, frozenset, dict, deque, Sequence, Mapping)
_UNSTORABLE = frozenset({"callable", "is-instance", "is-subclass", "generator", "call", "arguments"})
_NO_SCHEMAS = frozenset({"config", "default", "expected", "members", "metadata", "python_schema", "serialization"})


def _datetime_text(value: datetime) -> str:
    offset = value.utcoffset()
    return (value.astimezone(UTC) if offset and offset % _MINUTE else value).isoformat()


def _time_text(value: time) -> str:
    offset = value.utcoffset()
    if value.tzinfo is not None and (offset is None or offset % _MINUTE):
        raise ValueError("a time of day cannot keep this time zone; pass it naive and the zone's name apart")
    return value.isoformat()


def _sorted_items(value: Any, to_json: Any) -> list[Any]:
    return sorted(to_json(value), key=lambda item: json.dumps(item, sort_keys=True))


def _reveal(value: SecretStr) -> str:
    return value.get_secret_value()


def _reveal_bytes(value: SecretBytes) -> str:
    return value.get_secret_value().decode()


_FORMS: dict[Any, Any] = {
    datetime: PlainSerializer(_datetime_text, return_type=str, when_used="json"),
    time: PlainSerializer(_time_text, return_type=str, when_used="json"),
    set: WrapSerializer(_sorted_items, when_used="json"),
    frozenset: WrapSerializer(_sorted_items, when_used="json"),
    SecretStr: PlainSerializer(_reveal, return_type=str, when_used="json"),
    SecretBytes: PlainSerializer(_reveal_bytes, return_type=str, when_used="json"),
}
_OURS = frozenset({_datetime_text, _time_text, _sorted_items})


def with_stored_form(annotation: Any) -> Any:
    """``annotation`` with our JSON form wherever one of the types above stands in it.

    Not inside dataclasses, models and typed dicts: those are theirs to define.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, NewType):
        return with_stored_form(annotation.__supertype__)
    if origin is Annotated:
        return reduce(_annotate, annotation.__metadata__, with_stored_form(arguments[0]))
    if origin in (Union, UnionType):
        return reduce(or_, [with_stored_form(argument) for argument in arguments])
    if origin in _GENERICS and arguments:
        annotation = origin[tuple(with_stored_form(argument) for argument in arguments)]
    form = _FORMS.get(origin or annotation) if _is_hashable(annotation) else None
    return annotation if form is None else _annotate(annotation, form)
