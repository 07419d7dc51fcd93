"""Reads a handler's signature: does it take the run, and which fields does its payload have?

Guarantees: whatever cannot be a payload field is a ConfigurationError that names the handler, the parameter
and what to write, at registration and not at the first enqueue.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

from django_jobs.exceptions import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One payload field: its name, its resolved annotation, and whether it has no default."""

    name: str
    annotation: Any
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """A handler's parameters: ``fields`` without the run, which ``wants_run`` stands for."""

    handler: str
    wants_run: bool
    fields: tuple[Field, ...]


def read_parameters(handler: Callable[..., Any], run_type: type) -> Parameters:
    """ConfigurationError if a parameter can be neither the run nor a payload field."""
    return _Reader(handler, run_type).read()


class _Reader:
    def __init__(self, handler: Callable[..., Any], run_type: type) -> None:
        self._handler = handler
        self._run_type = run_type
        self._name = handler_name(handler)

    def read(self) -> Parameters:
        parameters = self._signature()
        wants_run = bool(parameters) and self._is_run(parameters[0])
        return Parameters(
            handler=self._name,
            wants_run=wants_run,
            fields=tuple(self._field(parameter) for parameter in parameters[int(wants_run) :]),
        )

    def _signature(self) -> list[Parameter]:
        if inspect.isgeneratorfunction(self._handler) or inspect.isasyncgenfunction(self._handler):
            raise ConfigurationError(
                f"Handler {self._name} is a generator, whose body a call does not run. Remove its yield."
            )
        try:
            return list(inspect.signature(self._handler).parameters.values())
        except (TypeError, ValueError, NameError) as error:
            raise ConfigurationError(
                f"Handler {self._name}: its signature cannot be read ({error}). Write a function with def."
            ) from error

    def _is_run(self, parameter: Parameter) -> bool:
        if parameter.annotation is Parameter.empty or self._annotation(parameter) is not self._run_type:
            return False
        if parameter.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            self._refuse(parameter, "the run is passed by position", f"{parameter.name} before any *")
        return True

    def _field(self, parameter: Parameter) -> Field:
        name, run = parameter.name, self._run_type.__name__
        if parameter.kind is Parameter.VAR_POSITIONAL:
            self._refuse(parameter, "payload fields have names", f"{name}: list[int], or a field for each")
        if parameter.kind is Parameter.VAR_KEYWORD:
            self._refuse(parameter, "payload fields are declared", f"{name}: dict[str, int], or a field for each")
        if parameter.kind is Parameter.POSITIONAL_ONLY:
            self._refuse(parameter, "payload fields are passed by name", f"{name} after the /")
        if parameter.annotation is Parameter.empty:
            self._refuse(parameter, "it has no annotation", f"{name}: int, {name}: str, or the type it carries")
        annotation = self._annotation(parameter)
        if mentions(annotation, self._run_type):
            self._refuse(parameter, f"only the first parameter is the {run}", f"run: {run} first, without Optional")
        return Field(name=name, annotation=annotation, required=parameter.default is Parameter.empty)

    def _annotation(self, parameter: Parameter) -> Any:
        probe = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
        function = inspect.unwrap(self._handler)
        names = getattr(getattr(function, "func", function), "__globals__", {})
        try:
            return get_type_hints(probe, globalns=names, include_extras=True)[parameter.name]
        except Exception as error:  # noqa: BLE001
            return self._refuse(
                parameter,
                f"its annotation {parameter.annotation!r} cannot be resolved ({error})",
                "a type that is imported at module level, outside TYPE_CHECKING",
            )

    def _refuse(self, parameter: Parameter, reason: str, instead: str) -> None:
        raise ConfigurationError(f"Handler {self._name}, parameter {parameter}: {reason}. Write {instead}.")


def handler_name(handler: Callable[..., Any]) -> str:
    """``module.qualname``, as error messages name it."""
    name = getattr(handler, "__qualname__", None) or type(handler).__qualname__
    return f"{getattr(handler, '__module__', '?')}.{name}"


def mentions(annotation: Any, wanted: type) -> bool:
    """Whether ``wanted`` stands anywhere in ``annotation``, as in ``wanted | None``."""
    return annotation is wanted or any(mentions(argument, wanted) for argument in get_args(annotation))
