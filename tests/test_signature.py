from __future__ import annotations

import functools
import typing as t
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import pytest
from django.contrib.auth.models import Group
from pydantic import BaseModel
from pydantic import Field as Constraint

from django_jobs.exceptions import ConfigurationError, InvalidPayload
from django_jobs.payload import Field, Signature
from tests.payloads import LIMIT, Colour, Run

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Basket:
    items: set[int]


class Wish(BaseModel):
    items: frozenset[str]


def signature_of(handler):
    return Signature.of(handler, run_type=Run)


def with_run_and_fields(run: Run, user_id: int, note: str = "hello", *, urgent: bool = False): ...


def with_fields(user_id: int): ...


def with_run(run: Run): ...


def with_nothing(): ...


def with_positional_run(run: Run, /, user_id: int): ...


async def asynchronous(user_id: int): ...


def test_a_first_parameter_annotated_as_the_run_receives_it():
    assert signature_of(with_run_and_fields).wants_run
    assert signature_of(with_run).wants_run
    assert signature_of(with_positional_run).wants_run
    assert not signature_of(with_fields).wants_run
    assert not signature_of(with_nothing).wants_run


def test_all_other_parameters_are_fields_in_order():
    assert signature_of(with_run_and_fields).fields == (
        Field(name="user_id", annotation=int, required=True),
        Field(name="note", annotation=str, required=False),
        Field(name="urgent", annotation=bool, required=False),
    )


def test_a_handler_without_fields_has_an_empty_payload():
    signature = signature_of(with_nothing)
    assert signature.encode({}, limit=LIMIT) == b"{}"
    assert signature.decode(b"{}") == {}


def test_a_coroutine_function_is_asynchronous():
    assert signature_of(asynchronous).is_async
    assert not signature_of(with_fields).is_async


def test_a_handler_is_named_with_its_module():
    assert signature_of(with_fields).handler == "tests.test_signature.with_fields"


def test_a_decorated_handler_is_read_through_its_decorator():
    @functools.wraps(with_run_and_fields)
    def wrapped(*args, **kwargs): ...

    assert signature_of(wrapped).fields == signature_of(with_run_and_fields).fields
    assert signature_of(wrapped).wants_run


def test_a_return_annotation_that_only_exists_for_type_checkers_does_not_matter():
    def handler(x: int) -> Decimal: ...

    assert signature_of(handler).fields[0].annotation is int


def test_constraints_of_an_annotation_are_kept():
    def handler(x: Annotated[int, Constraint(gt=0)]): ...

    with pytest.raises(InvalidPayload, match="x: input should be greater than 0"):
        signature_of(handler).encode({"x": 0}, limit=LIMIT)


@pytest.mark.parametrize("name", ["type", "self", "model_x", "_private", "json", "schema", "copy"])
def test_any_python_name_can_be_a_field(name):
    namespace = {}
    exec(f"def handler({name}: int): ...", namespace)
    signature = signature_of(namespace["handler"])
    assert signature.decode(signature.encode({name: 1}, limit=LIMIT)) == {name: 1}


def test_an_enum_that_two_fields_share_needs_no_second_look():
    def handler(a: t.Literal["x"], b: t.Literal["x"]): ...

    handler.__annotations__ = {"a": Colour, "b": Colour}
    signature = signature_of(handler)
    payload = {"a": Colour.RED, "b": Colour.TWO}
    assert signature.decode(signature.encode(payload, limit=LIMIT)) == payload


def many(*user_ids: int): ...


def any_named(**options: int): ...


def by_position(user_id: int, /): ...


def bare(user_id): ...


def late_run(user_id: int, run: Run): ...


def optional_run(run: Run | None): ...


def keyword_run(*, run: Run): ...


def nested_run(runs: list[Run]): ...


def model(group: Group): ...


def function(call: t.Callable[[], None]): ...


def generator(user_id: int):
    yield user_id


async def async_generator(user_id: int):
    yield user_id


def unresolved(amount: Decimal): ...


def misspelt(amount: Decimall): ...  # noqa: F821


def iterable(numbers: t.Iterable[int]): ...


def renamed(user_id: Annotated[int, Constraint(alias="id")]): ...


def defaulted(user_id: Annotated[int, Constraint(default=1)]): ...


def hidden_set(basket: Basket): ...


def hidden_sets(wishes: list[Wish]): ...


REFUSED = [
    (many, r"parameter \*user_ids.*have names. Write user_ids: list\[int\]"),
    (any_named, r"parameter \*\*options.*Write options: dict\[str, int\]"),
    (by_position, "parameter user_id.*passed by name. Write user_id after the /"),
    (bare, "parameter user_id: it has no annotation. Write user_id: int"),
    (late_run, "parameter run.*only the first parameter is the Run. Write run: Run first"),
    (optional_run, "parameter run.*Write run: Run first, without Optional"),
    (keyword_run, r"parameter run.*passed by position. Write run before any \*"),
    (nested_run, "parameter runs.*only the first parameter is the Run"),
    (model, "parameter group: .*Group.*primary key"),
    (function, "parameter call: its values cannot be stored"),
    (iterable, "parameter numbers: its values cannot be stored"),
    (generator, "is a generator.*Remove its yield"),
    (async_generator, "is a generator.*Remove its yield"),
    (unresolved, "parameter amount.*cannot be resolved.*outside TYPE_CHECKING"),
    (misspelt, "parameter amount.*cannot be resolved.*Decimall"),
    (renamed, "parameter user_id: .*Remove the alias"),
    (defaulted, "parameter user_id: its default belongs in the signature"),
    (hidden_set, "parameter basket: a set inside a dataclass.*Write list or tuple"),
    (hidden_sets, "parameter wishes: a set inside a dataclass.*Write list or tuple"),
]


@pytest.mark.parametrize(("handler", "message"), REFUSED, ids=[handler.__name__ for handler, _ in REFUSED])
def test_a_parameter_that_cannot_be_a_field_is_refused_by_name(handler, message):
    with pytest.raises(ConfigurationError, match=rf"Handler tests.test_signature.{handler.__name__}\b.*{message}"):
        signature_of(handler)


@pytest.mark.parametrize("handler", [5, None, "name"], ids=str)
def test_what_is_no_function_is_refused(handler):
    with pytest.raises(ConfigurationError, match="Write a function with def"):
        signature_of(handler)
