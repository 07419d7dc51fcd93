"""Builds the validator and the serializer of one handler's payload.

Guarantees: an annotation that pydantic or JSON cannot carry is a ConfigurationError that names the handler,
the parameter and what to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, NotRequired, Required

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer, SchemaValidator
from typing_extensions import TypedDict  # typing.TypedDict ignores its config before Python 3.12

from django_jobs.exceptions import ConfigurationError
from django_jobs.payload.parameters import Field, Parameters
from django_jobs.payload.stored_form import CONFIG, has_floats, is_exact, schema_fault, with_stored_form

_RENAMING = ("validation_alias", "serialization_alias", "serialization_exclude")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """``checked``: fields to decode again and compare; ``floats``: fields an integer could be lost in."""

    validator: SchemaValidator
    serializer: SchemaSerializer
    checked: tuple[str, ...]
    floats: tuple[str, ...]


def shape_of(parameters: Parameters) -> Shape:
    """The shape of what ``parameters`` accept. ConfigurationError for an annotation that does not work."""
    adapter = _adapter(parameters)
    schemas = _field_schemas(adapter.core_schema)
    for name, schema in schemas.items():
        _refuse_misfit(parameters, name, schema)
    checked = [name for name, schema in schemas.items() if not is_exact(schema["schema"])]
    return Shape(
        validator=adapter.validator,  # type: ignore[arg-type]
        # The adapter's own serializer does not know the typed dict's setting for bytes.
        serializer=SchemaSerializer(adapter.core_schema, {"ser_json_bytes": "base64"}),
        checked=tuple(checked),
        floats=tuple(name for name, schema in schemas.items() if name not in checked and has_floats(schema)),
    )


def _adapter(parameters: Parameters) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(_typed_dict(parameters.fields))
    except Exception as error:  # noqa: BLE001
        _refuse_culprit(parameters, error)


def _typed_dict(fields: tuple[Field, ...]) -> Any:
    items = {field.name: _item(field) for field in fields}
    payload = TypedDict("Payload", items)  # type: ignore[misc]
    payload.__pydantic_config__ = CONFIG  # type: ignore[attr-defined]
    return payload


def _item(field: Field) -> Any:
    annotation = with_stored_form(field.annotation)
    return Required[annotation] if field.required else NotRequired[annotation]


def _refuse_culprit(parameters: Parameters, error: Exception) -> NoReturn:
    for field in parameters.fields:
        try:
            TypeAdapter(_typed_dict((field,)))
        except Exception as fault:
            reason = str(fault).splitlines()[0].rstrip(".")
            instead = "a type that carries data: int, str, a dataclass; for a model instance its primary key"
            raise _misfit(parameters, field.name, f"{reason}. Write {instead}") from fault
    raise ConfigurationError(f"Handler {parameters.handler}: its payload cannot be read ({error}).") from error


def _field_schemas(root: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields' core schemas; an enum that several of them share is put back in its places."""
    definitions = {item["ref"]: item for item in root.get("definitions", ())}
    typed_dict = root["schema"] if root["type"] == "definitions" else root
    return {name: _with_enums(field, definitions) for name, field in typed_dict["fields"].items()}


def _with_enums(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_with_enums(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    target = definitions.get(node.get("schema_ref", ""), {})
    if node.get("type") == "definition-ref" and target.get("type") == "enum":
        return target
    return {key: _with_enums(item, definitions) for key, item in node.items()}


def _refuse_misfit(parameters: Parameters, name: str, field: Mapping[str, Any]) -> None:
    if any(key in field for key in _RENAMING):
        raise _misfit(parameters, name, "the caller's name is the handler's. Remove the alias or exclude")
    if field["schema"]["type"] == "default":
        raise _misfit(parameters, name, "its default belongs in the signature. Write it after =")
    if fault := schema_fault(field):
        raise _misfit(parameters, name, fault)


def _misfit(parameters: Parameters, name: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"Handler {parameters.handler}, parameter {name}: {reason}.")
