"""Encodes what a caller passes to a handler and decodes it in a worker.

Guarantees: whatever ``encode`` returns, ``decode`` takes, also after PostgreSQL stored it as jsonb; each
field comes back equal and of its annotated type, as a fresh object. An instance of a subclass of str, int,
datetime or date where the base is annotated (a SafeString, an IntEnum member, a pendulum instant) comes
back as the base; an integer given for a float as that float. Whatever cannot be kept so is refused by
``encode`` with the field's path. Only the fields that were given are stored, so a default is the handler's
own at the time it runs.

Not promised: that a payload of an older release still fits. Then ``decode`` says so.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from django_jobs.exceptions import InvalidPayload
from django_jobs.payload.comparison import difference, is_same
from django_jobs.payload.faults import refusal, unstorable
from django_jobs.payload.parameters import Field, read_parameters
from django_jobs.payload.shape import shape_of

_LONG_INTEGER = re.compile(rb"\d{4301}")  # more digits than CPython and pydantic read
_EXPONENT = re.compile(rb"\de[+-]?\d")
_STRING_OR_EXPONENT = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?\d++(?:\.\d++)?[eE][+-]?\d++')
_NUL = b"\\u0000"
_WRAPPING = re.compile(r"^(?:Error serializing to JSON: |PydanticSerializationError: |Error calling function `\w+`: )+")
_ADVICE = ". Annotate the precise type"
_REPLACED = "\ufffd".encode()  # what pydantic writes for a lone surrogate in a key


class UndecodablePayload(InvalidPayload):
    """The stored bytes are no JSON: no build of the program can run this job."""


class Signature:
    """What one handler's payload looks like. Immutable; any thread may use it.

    ``handler``: its dotted name. ``wants_run``: the first argument is the run. ``is_async``: a coroutine
    function. ``fields``: the payload's fields, in the order of the signature.
    """

    __slots__ = (
        "_decode",
        "_dump",
        "_names",
        "_shape",
        "_validate",
        "fields",
        "handler",
        "is_async",
        "wants_run",
    )

    def __init__(self, handler: Callable[..., Any], run_type: type) -> None:
        parameters = read_parameters(handler, run_type)
        self.handler: str = parameters.handler
        self.wants_run: bool = parameters.wants_run
        self.is_async: bool = inspect.iscoroutinefunction(handler)
        self.fields: tuple[Field, ...] = parameters.fields
        self._names = tuple(field.name for field in parameters.fields)
        self._shape = shape_of(parameters)
        self._validate = self._shape.validator.validate_python
        self._decode = self._shape.validator.validate_json
        self._dump = self._shape.serializer.to_json

    @classmethod
    def of(cls, handler: Callable[..., Any], *, run_type: type) -> Signature:
        """Read ``handler``: a first parameter annotated ``run_type`` is the run, all others are fields.

        ConfigurationError names the parameter that cannot be part of a payload, and what to write.
        """
        return cls(handler, run_type)

    @property
    def runs_no_foreign_code(self) -> bool:
        """Is encoding pydantic's and ours alone, without validators or serializers of the fields' own types?"""
        return not self._shape.checked

    def encode(self, payload: Mapping[str, object], *, limit: int) -> bytes:
        """``payload`` as compact JSON in UTF-8, at most ``limit`` bytes. InvalidPayload names the field."""
        given = payload if type(payload) is dict else dict(payload)
        fields = self._validated(given)
        text = self._dumped(fields)
        if len(text) > limit:
            raise self._invalid(f"{len(text):,} bytes are above the limit of {limit:,}; pass a reference instead")
        if self._is_suspicious(text):
            self._refuse_unstorable(fields, text)
        if self._shape.checked:
            self._refuse_changed(fields, text)
        return text

    def decode(self, text: str | bytes) -> dict[str, Any]:
        """The given fields, fresh, of their annotated types.

        InvalidPayload if they do not fit this signature, UndecodablePayload if ``text`` is no JSON.
        """
        try:
            return self._decode(text, strict=True)  # type: ignore[no-any-return]
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False)[0]["type"] == "json_invalid":
                raise UndecodablePayload(f"Payload of {self.handler}: {refusal(error, None)}") from None
            raise self._invalid(refusal(error, None, self._names)) from None

    def _validated(self, given: dict[str, object]) -> dict[str, Any]:
        try:
            # Strict by the call too, since models and typed dicts have settings of their own.
            fields: dict[str, Any] = self._validate(given, strict=True)
        except ValidationError as error:
            raise self._invalid(refusal(error, given, self._names)) from None
        except Exception as error:
            raise self._invalid(f"its validation raised {type(error).__name__}") from error
        for name in self._shape.floats:
            if name in given and fields[name] != given[name]:
                raise self._invalid(f"{name}: an integer this large is not exact as a float; pass a float")
        return fields

    def _dumped(self, fields: dict[str, Any]) -> bytes:
        try:
            text = self._dump(fields, warnings="error" if self._shape.checked else False)
        except Exception as error:  # noqa: BLE001
            raise self._invalid(self._blame(fields, error)) from None
        if (self._shape.floats or self._shape.checked) and _EXPONENT.search(text):
            return _without_exponents(text)
        return text

    def _blame(self, fields: dict[str, Any], error: Exception) -> str:
        """pydantic does not say where serializing stopped."""
        try:
            if fault := unstorable(fields):
                return fault
        except RecursionError:
            return "it is nested too deeply"
        return f"{self._culprit(fields)} cannot be stored as JSON: {_without_value(error)}"

    def _culprit(self, fields: dict[str, Any]) -> str:
        for name, value in fields.items():
            try:
                self._dump({name: value}, warnings="error")
            except Exception:  # noqa: BLE001
                return name
        return "it"

    def _is_suspicious(self, text: bytes) -> bool:
        """Three searches of the result are cheaper than a look at every value."""
        return _NUL in text or _REPLACED in text or (len(text) > 4300 and _LONG_INTEGER.search(text) is not None)

    def _refuse_unstorable(self, fields: dict[str, Any], text: bytes) -> None:
        try:
            fault = unstorable(fields) or unstorable(json.loads(text))
        except ValueError:
            fault = "an integer has more than 4300 digits"
        if fault:
            raise self._invalid(fault)

    def _refuse_changed(self, fields: dict[str, Any], text: bytes) -> None:
        try:
            fault = self._change(fields, text)
        except RecursionError:
            fault = "it is nested too deeply"
        if fault:
            raise self._invalid(fault)

    def _change(self, fields: dict[str, Any], text: bytes) -> str | None:
        try:
            back = self._decode(text, strict=True)
        except ValidationError as error:
            return unstorable(fields) or f"{refusal(error, None)}, when it comes back{_ADVICE}"
        for name in self._shape.checked:
            if name not in fields or is_same(fields[name], back[name]):
                continue
            if fault := difference(fields[name], back[name], (name,)):
                return unstorable(fields) or fault + _ADVICE
        return None

    def _invalid(self, reason: str) -> InvalidPayload:
        return InvalidPayload(f"Payload of {self.handler}: {reason}")


def _without_value(error: Exception) -> str:
    """Why serializing stopped. pydantic's warnings quote the value, its errors do not."""
    if "Pydantic serializer warnings" in str(error):
        return "it holds a value of another type than it declares"
    return _WRAPPING.sub("", str(error).partition("\n")[0])


def _without_exponents(text: bytes) -> bytes:
    """``text`` with each float written out: jsonb would give 1e+16 back as an integer, but keeps a .0."""
    return _STRING_OR_EXPONENT.sub(_written_out, text)


def _written_out(match: re.Match[bytes]) -> bytes:
    found = match[0]
    if found.startswith(b'"'):
        return found
    digits = f"{Decimal(found.decode()):f}"
    return (digits if "." in digits else f"{digits}.0").encode()
