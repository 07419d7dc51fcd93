import typing as t
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, SecretBytes, SecretStr

from django_jobs.exceptions import InvalidPayload
from django_jobs.payload import Signature, UndecodablePayload, payload_hash
from tests.payloads import (
    BERLIN,
    KOLKATA,
    LIMIT,
    Address,
    Colour,
    Invoice,
    Level,
    Moment,
    Node,
    Pair,
    Point,
    Run,
    Shade,
    encoded,
    nested,
    refusal,
    round_trip,
    signature_of,
)

KEPT = [
    (str, "naïve 😀 \\u0000 \ufffd"),
    (int, 2**70),
    (int, 10**4299),
    (bool, True),
    (float, 1e300),
    (float, 5e-324),
    (UUID, UUID(int=7)),
    (UUID | None, None),
    (Decimal, Decimal("1.10")),
    (Decimal, Decimal("1E+400")),
    (date, date(1, 1, 1)),
    (datetime, datetime(2026, 11, 29, 1, 2, 3, 123456, tzinfo=UTC)),
    (datetime, datetime(2026, 11, 29, 1, 2, 3, 123456)),  # noqa: DTZ001
    (datetime, datetime.max),  # noqa: DTZ901
    (datetime, datetime(2026, 11, 29, tzinfo=KOLKATA)),
    (datetime, datetime(1900, 1, 1, tzinfo=KOLKATA)),
    (datetime, datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))),
    (time, time(1, 2, 3, 4)),
    (time, time(1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
    (timedelta, timedelta(days=-1, microseconds=1)),
    (timedelta, timedelta.min),
    (bytes, b"\xff\x00"),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], ()),
    (set[int], {3, 1}),
    (frozenset[str], frozenset("ab")),
    (set[bytes], {b"\xff", b"a"}),
    (list[set[datetime]], [{datetime(2026, 1, 1, tzinfo=UTC)}]),
    (dict[int, str], {1: "a"}),
    (dict[bool, str], {True: "a"}),
    (dict[UUID, Decimal], {UUID(int=1): Decimal("0.10")}),
    (dict[datetime, time], {datetime(1900, 1, 1, tzinfo=KOLKATA): time(1)}),
    (dict[bytes, int], {b"\xff": 1}),
    (t.NewType("Ids", set[int]), {1}),
    (t.Sequence[int], [1]),
    (t.Literal["a", 1, True], True),
    (t.Literal["a", 1, True], 1),
    (int | str, "1"),
    (Colour, Colour.TWO),
    (dict[Colour, int], {Colour.RED: 1}),
    (Shade, Shade.DARK),
    (Level, Level.HIGH),
    (Pair, Pair(1, "a")),
    (Address, {"street": "High Street", "number": 1}),
    (Point, Point(1, 2.5, ["a"])),
    (list[Point], [Point(1)]),
    (Node, Node("a", Node("b"))),
    (Invoice, Invoice(number=1, total=2.5)),
    (SecretStr, SecretStr("hush")),
    (SecretStr | None, SecretStr("hush")),
    (list[SecretStr], [SecretStr("hush")]),
    (SecretBytes, SecretBytes(b"\xff")),
    (t.Any, {"a": [1, None, 1.5, True, {"b": "c"}]}),
    (t.Any, [1e16, 1e-7, 1.5e300, "1e16"]),
    (JsonValue, nested(90)),
    (list, nested(90)),
    (object, 1),
]


@pytest.mark.parametrize(("annotation", "value"), KEPT, ids=[f"{n} {a}"[:50] for n, (a, _) in enumerate(KEPT)])
def test_a_value_comes_back_equal_and_of_its_type(annotation, value):
    back = round_trip(annotation, value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("value", [{"a": 1.0}, {"a": 1}, {"a": True}, {"a": "1"}], ids=repr)
def test_numbers_booleans_and_text_stay_apart_where_anything_is_allowed(value):
    assert type(round_trip(t.Any, value)["a"]) is type(value["a"])


def test_an_instant_that_happens_twice_keeps_its_offset():
    second = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)
    assert round_trip(datetime, second).isoformat() == second.isoformat()


SCALARS = {
    str: st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(),
    UUID: st.uuids(),
    date: st.dates(),
    datetime: st.datetimes(timezones=st.none() | st.timezones()),
    time: st.times(),
    timedelta: st.timedeltas(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    Colour: st.sampled_from(Colour),
}


@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_any_scalar_comes_back(kind, data):
    value = data.draw(SCALARS[kind])
    back = round_trip(kind, value)
    assert type(back) is kind
    if kind is datetime:
        assert (back.tzinfo is None) == (value.tzinfo is None)
        assert back.replace(tzinfo=None) - (back.utcoffset() or timedelta(0)) == value.replace(tzinfo=None) - (
            value.utcoffset() or timedelta(0)
        )
    else:
        assert back == value


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None, exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None, exclude_categories=())), inner),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_any_json_value_comes_back_or_is_refused(value):
    try:
        back = round_trip(t.Any, value)
    except InvalidPayload:
        return
    assert repr(back) == repr(value)


@given(st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.integers() | st.booleans()))
def test_any_plain_dictionary_is_accepted(value):
    assert repr(round_trip(t.Any, value)) == repr(value)


@pytest.mark.parametrize(
    ("annotation", "value", "kept"),
    [
        (str, mark_safe("<b>"), "<b>"),
        (str, Shade.DARK, "dark"),
        (int, Level.HIGH, 3),
        (float, 2, 2.0),
        (datetime, Moment(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
    ],
    ids=["SafeString", "StrEnum", "IntEnum", "int", "datetime subclass"],
)
def test_a_subclass_comes_back_as_the_annotated_type(annotation, value, kept):
    back = round_trip(annotation, value)
    assert back == kept
    assert type(back) is annotation


def test_an_instant_of_another_class_is_accepted_inside_a_dataclass():
    @dataclass
    class Event:
        at: datetime

    moment = Moment(2026, 1, 1, tzinfo=UTC)
    assert round_trip(Event, Event(moment)).at == moment


def test_each_decode_gives_fresh_objects():
    signature = signature_of(dict[str, list[int]])
    text = signature.encode({"x": {"a": [1]}}, limit=LIMIT)
    first = signature.decode(text)
    first["x"]["a"].append(object())
    first["y"] = object()
    assert signature.decode(text) == {"x": {"a": [1]}}


def test_a_change_after_the_encoding_changes_nothing():
    numbers = [1]
    signature = signature_of(list[int])
    text = signature.encode({"x": numbers}, limit=LIMIT)
    numbers.append(2)
    assert signature.decode(text) == {"x": [1]}


def test_the_stored_form_is_compact_utf8():
    assert encoded(dict[str, list[int]], {"ä": [1, 2]}) == '{"x":{"ä":[1,2]}}'.encode()


def test_a_set_is_stored_in_an_order_of_its_own():
    assert encoded(set[str], {"b", "a", "c"}) == b'{"x":["a","b","c"]}'


def test_a_secret_is_stored_as_it_is_but_shown_nowhere_else():
    assert encoded(SecretStr, SecretStr("hush")) == b'{"x":"hush"}'
    assert "hush" not in refusal(list[SecretStr], [SecretStr("hush"), 5])


def handler(run: Run, user_id: int, note: str = "hello", *, urgent: bool = False): ...


SIGNATURE = Signature.of(handler, run_type=Run)


def test_only_given_fields_are_stored_and_come_back():
    text = SIGNATURE.encode({"user_id": 5}, limit=LIMIT)
    assert text == b'{"user_id":5}'
    assert SIGNATURE.decode(text) == {"user_id": 5}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({}, "user_id is missing"),
        ({"user_id": 1, "nots": "a"}, "nots is not a field; did you mean note?"),
        ({"user_id": 1, "zzz": "a"}, "zzz is not a field"),
        ({"note": 5}, "user_id is missing; note: input should be a valid string, not int"),
        ({"user_id": 1, "run": 1}, "run is not a field"),
        ({"user_id": 1, 2: 3}, "[2]: keys should be strings"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_payload_with_the_wrong_fields_is_refused(payload, reason):
    with pytest.raises(InvalidPayload) as caught:
        SIGNATURE.encode(payload, limit=LIMIT)
    assert str(caught.value) == f"Payload of tests.test_payload.handler: {reason}"


def test_many_reasons_are_cut_short():
    assert refusal(list[int], ["a"] * 100).endswith("; and 95 more")


def test_any_mapping_is_a_payload():
    from types import MappingProxyType

    assert SIGNATURE.encode(MappingProxyType({"user_id": 5}), limit=LIMIT) == b'{"user_id":5}'


def test_text_and_bytes_are_decoded_alike():
    assert SIGNATURE.decode('{"user_id":5}') == SIGNATURE.decode(b'{"user_id":5}')


@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe", b'{"user_id":"\xff"}', "[" * 5_000 + "]" * 5_000], ids=range(5))
def test_bytes_that_are_no_json_are_undecodable(text):
    with pytest.raises(UndecodablePayload):
        SIGNATURE.decode(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "user_id is missing"),
        ('{"user_id":"5"}', "user_id: input should be a valid integer"),
        ('{"user_id":5,"old":1}', "old is not a field"),
        ("[]", "input should be an object"),
        ("null", "input should be an object"),
    ],
)
def test_json_that_does_not_fit_says_which_field(text, reason):
    with pytest.raises(InvalidPayload, match=reason) as caught:
        SIGNATURE.decode(text)
    assert type(caught.value) is InvalidPayload


@pytest.mark.parametrize("annotation", [float, t.Any], ids=["float", "any"])
def test_a_float_is_stored_so_that_jsonb_keeps_it_one(annotation):
    assert encoded(annotation, 1e16) == b'{"x":10000000000000000.0}'
    assert encoded(annotation, -1.5e-7) == b'{"x":-0.00000015}'


def test_a_model_is_decoded_strictly_whatever_its_own_settings():
    with pytest.raises(InvalidPayload, match=r"x.number: input should be a valid integer"):
        signature_of(Invoice).decode('{"x":{"number":"1"}}')


def test_the_order_of_keys_does_not_count():
    assert payload_hash("job", b'{"a":1,"b":{"c":1,"d":2}}') == payload_hash("job", b'{"b":{"d":2,"c":1},"a":1}')


def test_types_job_types_and_nested_values_count():
    payloads = [
        b'{"a":1}',
        b'{"a":"1"}',
        b'{"a":true}',
        b'{"a":null}',
        b'{"a":[1]}',
        b'{"a":[[1]]}',
        b"{}",
        b'{"b":1}',
    ]
    hashes = {payload_hash(name, payload) for name in ("job", "other") for payload in payloads}
    assert len(hashes) == 2 * len(payloads)


def test_a_hash_is_the_same_in_every_release():
    assert (
        payload_hash("send", '{"b":"ä","a":1}'.encode()).hex()
        == "f8b337df685d66e9841933906ef8c26f29e8dba71de9ccb41f4b301a3d6cb034"
    )


def test_two_hundred_thousand_payloads_have_as_many_hashes():
    hashes = {payload_hash("job", b'{"id":%d}' % number) for number in range(200_000)}
    assert len(hashes) == 200_000


def test_a_default_that_was_not_given_does_not_count():
    without = SIGNATURE.encode({"user_id": 5}, limit=LIMIT)
    given_it = SIGNATURE.encode({"user_id": 5, "note": "hello"}, limit=LIMIT)
    assert payload_hash("job", without) != payload_hash("job", given_it)
