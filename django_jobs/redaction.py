"""What people see of a payload: the values of fields that may hold secrets are hidden.

A field is hidden by its name, at any depth, or because the handler's signature says SecretStr or SecretBytes.
Not promised: a secret in a field of another name, or in an error's text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_type_hints, is_typeddict

from pydantic import BaseModel, SecretBytes, SecretStr

HIDDEN = "••••••"
DEFAULT_NAMES = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "auth",
    "api_key",
    "private_key",
    "access_key",
    "credential",
    "credentials",
    "cookie",
    "session",
    "session_id",
    "signature",
    "otp",
    "pin",
    "cvc",
    "cvv",
    "card",
    "iban",
    "ssn",
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


def redact(payload: Any, names: Iterable[str], secret_fields: Collection[str] = ()) -> Any:
    """A copy of JSON data with HIDDEN for what is not to be seen. ``secret_fields``: more names, taken exactly."""
    hidden = tuple(_words(name) for name in names)
    return _redacted(payload, hidden, frozenset(secret_fields))


def secret_fields(annotations: Iterable[tuple[str, Any]]) -> frozenset[str]:
    """The names, at any depth, of the fields that these annotated fields declare to be secret."""
    return frozenset(_secret_names(annotations, set()))


def _redacted(value: Any, hidden: tuple[tuple[str, ...], ...], exact: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_redacted(item, hidden, exact) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: HIDDEN
        if item is not None and (name in exact or _is_hidden(name, hidden))
        else _redacted(item, hidden, exact)
        for name, item in value.items()
    }


@lru_cache(maxsize=4096)
def _is_hidden(name: str, hidden: tuple[tuple[str, ...], ...]) -> bool:
    words = _words(name)
    return any(_contains(words, wanted) for wanted in hidden)


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def _contains(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Do these words stand in a row, or as one word? The last may be a plural."""
    if not wanted:
        return False
    forms = {wanted, (*wanted[:-1], wanted[-1] + "s")}
    rows = (words[start : start + len(wanted)] for start in range(len(words) - len(wanted) + 1))
    return any(row in forms for row in rows) or any("".join(form) in words for form in forms)


def _secret_names(annotations: Iterable[tuple[str, Any]], seen: set[Any]) -> Iterator[str]:
    for name, annotation in annotations:
        for part in _parts(annotation):
            if isinstance(part, type) and issubclass(part, SecretStr | SecretBytes):
                yield name
            elif _is_record(part) and part not in seen:
                seen.add(part)
                yield from _secret_names(_record_fields(part), seen)


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)


def _is_record(part: Any) -> bool:
    return isinstance(part, type) and (issubclass(part, BaseModel) or is_dataclass(part) or is_typeddict(part))


def _record_fields(record: Any) -> Iterator[tuple[str, Any]]:
    if issubclass(record, BaseModel):
        for name, field in record.model_fields.items():
            yield name, field.annotation
            for alias in (field.alias, field.serialization_alias):
                if alias:
                    yield alias, field.annotation
        return
    hints = get_type_hints(record, include_extras=True)
    names = [field.name for field in fields(record)] if is_dataclass(record) else hints
    yield from ((name, hints[name]) for name in names)
