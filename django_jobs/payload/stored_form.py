"""How a payload field's type is stored, and which types are known to come back as they were.

pydantic's own JSON form is right for most types. Ours replaces it where it loses something: a set has no
order (and so no stable hash), an offset of a local mean time has seconds, a time of day can have a zone
without an offset, and a secret is masked.

Guarantees: a field that ``is_exact`` accepts comes back equal and of the annotated type, so that encoding it
needs no second look. Every other field is decoded again and compared when it is encoded.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import reduce
from types import UnionType
from typing import Annotated, Any, NewType, Union, get_args, get_origin

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
_PLAIN_KEYS = frozenset({"str", "int", "uuid", "date", "datetime", "decimal"})
_GENERICS = (list, tuple, set, frozenset, dict, deque, Sequence, Mapping)
_UNSTORABLE = frozenset({"callable", "is-instance", "is-subclass", "generator"})
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
    return base64.urlsafe_b64encode(value.get_secret_value()).decode()


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
        return Union[tuple(with_stored_form(argument) for argument in arguments)]  # noqa: UP007
    if origin in _GENERICS and arguments:
        annotation = origin[tuple(with_stored_form(argument) for argument in arguments)]
    form = _FORMS.get(origin or annotation) if _is_hashable(annotation) else None
    return annotation if form is None else _annotate(annotation, form)


def _annotate(annotation: Any, metadata: Any) -> Any:
    return Annotated[annotation, metadata]


def _is_hashable(annotation: Any) -> bool:
    return type(annotation).__hash__ is not None


def is_exact(node: Mapping[str, Any]) -> bool:
    """Whether every value that this part of a pydantic core schema accepts comes back as it was."""
    kind = node["type"]
    if node.get("serialization") is not None and not _is_ours(node):
        return False
    if kind in ("datetime", "time"):
        return _is_ours(node)
    if kind in ("set", "frozenset"):
        return _is_ours(node) and is_exact(node["items_schema"])
    return kind in _PLAIN or _is_exact_choice(node) or _is_exact_container(node)


def _is_exact_choice(node: Mapping[str, Any]) -> bool:
    """Enum members and literals are told apart in JSON if they are all strings or all integers."""
    match node["type"]:
        case "enum":
            values = [member.value for member in node["members"]]
        case "literal":
            values = node["expected"]
        case _:
            return False
    kinds = {type(value) for value in values}
    return kinds in ({str}, {int}, {bool}) and node.get("missing") is None


def _is_exact_container(node: Mapping[str, Any]) -> bool:
    match node:
        case {"type": "nullable", "schema": {"type": inner} as item}:
            return inner not in ("none", "nullable") and is_exact(item)
        case {"type": "list", "items_schema": item}:
            return is_exact(item)
        case {"type": "tuple", "items_schema": items}:
            return all(is_exact(item) for item in items)
        case {"type": "dict", "keys_schema": key, "values_schema": item}:
            return _is_exact_key(key) and is_exact(item)
        case {"type": "typed-dict", "fields": fields, "config": {"title": _, **config}}:
            return config == _core_config() and all(is_exact(field["schema"]) for field in fields.values())
    return False


def _is_exact_key(node: Mapping[str, Any]) -> bool:
    if node["type"] == "enum":
        return all(type(member.value) is str for member in node["members"]) and is_exact(node)
    return node["type"] in _PLAIN_KEYS and is_exact(node)


def _is_ours(node: Mapping[str, Any]) -> bool:
    return node.get("serialization", {}).get("function") in _OURS


def _core_config() -> dict[str, Any]:
    config = dict(CONFIG)
    config["extra_fields_behavior"] = config.pop("extra")
    return config


def schema_fault(node: Mapping[str, Any]) -> str | None:
    """Why no value of this type can be kept, and what to write; None if some can."""
    for part in schema_parts(node):
        if part["type"] in _UNSTORABLE:
            return "its values cannot be stored as JSON. Write a type such as int or list[str]"
        if part["type"] in ("set", "frozenset") and "serialization" not in part:
            return "a set inside a dataclass, model or typed dict has no stable order. Write list or tuple there"
    return None


def has_floats(node: Mapping[str, Any]) -> bool:
    """Whether an integer could be taken for a float somewhere in it."""
    return any(part["type"] == "float" for part in schema_parts(node))


def schema_parts(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """This core schema and every schema in it. A python-only branch is left out: JSON does not take it."""
    waiting: list[Any] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list | tuple):
            waiting.extend(part)
        elif isinstance(part, dict):
            if isinstance(part.get("type"), str):
                yield part
            waiting.extend(item for key, item in part.items() if key not in _NO_SCHEMAS)
