import json
import typing as t
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe
from pydantic import JsonValue, SecretStr

from django_jobs.exceptions import EnqueueError, InvalidPayload
from django_jobs.payload import UndecodablePayload
from tests.payloads import (
    KOLKATA,
    LIMIT,
    Invoice,
    Login,
    Node,
    Point,
    Shade,
    Trimmed,
    encoded,
    nested,
    refusal,
    signature_of,
)

REFUSED = [
    (int, True, "x: input should be a valid integer, not bool"),
    (int, "1", "x: input should be a valid integer, not str"),
    (int, 1.0, "x: input should be a valid integer, not float"),
    (bool, 1, "x: input should be a valid boolean, not int"),
    (float, float("nan"), "x: input should be a finite number"),
    (list[float], [1.0, float("inf")], "x[1]: input should be a finite number"),
    (float | None, float("-inf"), "x: input should be a finite number"),
    (dict[str, list[Decimal]], {"a": [Decimal("NaN")]}, "x.a[0]: input should be a finite number"),
    (Invoice, Invoice(number=1, total=float("nan")), "x.total is not a finite number"),
    (t.Any, [float("nan")], "x[0] is not a finite number"),
    (float, 2**53 + 1, "x: an integer this large is not exact as a float"),
    (float, 10**400, "x: input should be a valid number"),
    (int, 10**5000, "an integer has more than 4300 digits"),
    (date, datetime(2026, 1, 1, tzinfo=UTC), "x: input should be a valid date, not datetime"),
    (datetime, date(2026, 1, 1), "x: input should be a valid datetime, not date"),
    (UUID, str(UUID(int=1)), "x: input should be an instance of UUID, not str"),
    (Decimal, 1, "x: input should be an instance of Decimal, not int"),
    (Shade, "dark", "x: input should be an instance of Shade, not str"),
    (list[int], (1,), "x: input should be a valid list, not tuple"),
    (bytes, "a", "x: input should be a valid bytes, not str"),
    (time, time(1, tzinfo=KOLKATA), "x cannot be stored as JSON: ValueError: a time of day"),
    (str, lazystr("hello"), "x: input should be a valid string, not a lazy translation"),
    (t.Any, {"a": lazystr("hello")}, "x.a is a lazy translation"),
    (t.Any, (1, 2), "x would come back as list, not tuple. Annotate the precise type"),
    (t.Any, {1: "a"}, "the keys of x would not come back as they are. Annotate the precise type"),
    (t.Any, [UUID(int=1)], "x[0] would come back as str, not UUID. Annotate the precise type"),
    (t.Any, {"at": [datetime(2026, 1, 1, tzinfo=UTC)]}, "x.at[0] would come back as str, not datetime"),
    (t.Any, mark_safe("a"), "x would come back as str, not SafeString"),
    (t.Any, {1}, "x would come back as list, not set"),
    (t.Any, object(), "x cannot be stored as JSON: Unable to serialize unknown type"),
    (UUID | str, str(UUID(int=1)), "x would come back as UUID, not str. Annotate the precise type"),
    (Trimmed, Trimmed(text="a"), "x.text would not come back equal"),
    (Login, Login(password="hush"), "x.password would not come back equal"),
    (Point, Point("a"), "x cannot be stored as JSON: it holds a value of another type than it declares"),
    (dict[tuple[int, int], str], {(1, 2): "a"}, "x['1,2'] (the key): input should be a valid array"),
]


@pytest.mark.parametrize(
    ("annotation", "value", "reason"), REFUSED, ids=[f"{n} {row[2]}"[:60] for n, row in enumerate(REFUSED)]
)
def test_a_value_that_would_not_come_back_is_refused_with_its_path(annotation, value, reason):
    assert refusal(annotation, value).startswith(reason)


def test_a_model_instance_is_refused_with_advice():
    from django.contrib.auth.models import Group

    assert "an instance of the model Group; pass its primary key" in refusal(int, Group(name="staff"))
    assert "an instance of the model Group; pass its primary key" in refusal(t.Any, [Group(name="staff")])


BAD_TEXT = [("\0", "U+0000"), ("\ud800", "U+D800"), ("a\udfffb", "U+DFFF")]


@pytest.mark.parametrize(("text", "named"), BAD_TEXT, ids=ascii)
@pytest.mark.parametrize("annotation", [dict[str, list[dict[str, str]]], t.Any], ids=["typed", "any"])
def test_text_that_postgresql_cannot_store_is_refused_in_a_nested_value(annotation, text, named):
    assert refusal(annotation, {"items": [{}, {"name": text}]}).startswith("x.items[1].name contains ")
    assert named in refusal(annotation, {"items": [{}, {"name": text}]})


@pytest.mark.parametrize(("text", "named"), BAD_TEXT, ids=ascii)
@pytest.mark.parametrize("annotation", [dict[str, list[dict[str, str]]], t.Any], ids=["typed", "any"])
def test_text_that_postgresql_cannot_store_is_refused_in_a_nested_key(annotation, text, named):
    reason = refusal(annotation, {"items": [{text: "a"}]})
    assert reason.startswith("a key of x.items[0] contains ")
    assert named in reason


@pytest.mark.parametrize(("text", "named"), BAD_TEXT, ids=ascii)
def test_text_that_postgresql_cannot_store_is_refused_in_a_dataclass_and_a_model(text, named):
    assert refusal(Node, Node("a", Node(text))).startswith("x.child.text contains ")
    assert named in refusal(SecretStr, SecretStr(text)) or "cannot be stored" in refusal(SecretStr, SecretStr(text))


@pytest.mark.parametrize("annotation", [t.Any, list, JsonValue], ids=str)
@pytest.mark.parametrize("depth", [101, 150, 199, 255, 5_000, 100_000])
def test_a_list_nested_too_deeply_is_refused(annotation, depth):
    assert "deep" in refusal(annotation, nested(depth))


def test_dicts_and_dataclasses_nested_too_deeply_are_refused():
    assert "deep" in refusal(dict, nested(5_000, lambda inner: {"a": inner}))
    node = None
    for _ in range(5_000):
        node = Node("a", node)
    assert "deep" in refusal(Node, node)


@pytest.mark.parametrize("depth", range(80, 120))
def test_whatever_depth_is_accepted_can_be_decoded(depth):
    signature = signature_of(t.Any)
    try:
        text = signature.encode({"x": nested(depth)}, limit=LIMIT)
    except InvalidPayload:
        assert depth >= 100
    else:
        assert signature.decode(text) == json.loads(text)


@pytest.mark.parametrize("annotation", [t.Any, list, JsonValue], ids=str)
def test_a_value_that_contains_itself_is_refused(annotation):
    endless = []
    endless.append(endless)
    assert "contains itself" in refusal(annotation, endless)


def test_a_payload_above_the_limit_is_refused_with_both_sizes():
    overhead = len('{"x":""}')
    assert len(encoded(str, "a" * (LIMIT - overhead))) == LIMIT
    assert refusal(str, "a" * (LIMIT - overhead + 1)).startswith("262,145 bytes are above the limit of 262,144")


def test_the_limit_counts_bytes_and_not_characters():
    assert "11 bytes" in refusal(str, "€", limit=10)


def test_no_refusal_shows_a_value():
    for annotation, value in [
        (int, "hush"),
        (dict[str, int], {"a": "hush"}),
        (t.Any, ("hush",)),
        (UUID | str, b"hush"),
    ]:
        assert "hush" not in refusal(annotation, value)


def test_a_refusal_is_an_enqueue_error_and_a_value_error():
    assert issubclass(InvalidPayload, EnqueueError)
    assert issubclass(UndecodablePayload, InvalidPayload)
    assert issubclass(InvalidPayload, ValueError)
