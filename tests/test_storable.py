import enum
import json
from datetime import UTC, datetime
from decimal import Decimal
from time import thread_time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobs.storable import DEPTH, JSON_BYTES, clean_json, clean_text

ANY_TEXT = st.text(alphabet=st.characters(codec=None, exclude_categories=()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary() | st.uuids() | st.decimals(),
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT | st.integers(), inner) | st.tuples(inner, inner),
)


class Level(enum.IntEnum):
    HIGH = 3


class Colour(enum.Enum):
    RED = "red"


class Unprintable:
    def __str__(self):
        raise ValueError

    __repr__ = __str__


class HostileDict(dict):
    def items(self):
        raise RuntimeError


class LyingText(str):
    __slots__ = ()

    def __len__(self):
        return 0


def size_of(value):
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())


@given(ANY_TEXT, st.integers(0, 200))
def test_cleaned_text_keeps_to_its_bytes_and_can_be_stored(text, limit):
    cleaned = clean_text(text, limit)
    assert len(cleaned.encode()) <= limit
    assert "\0" not in cleaned


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0")))
def test_short_and_storable_text_stays_as_it_is(text):
    assert clean_text(text, len(text.encode())) == text


def test_nul_and_lone_surrogates_are_shown():
    assert clean_text("a\0b\ud800c", 100) == "a␀b�c"


def test_long_text_keeps_head_and_tail_and_says_how_much_is_missing():
    cleaned = clean_text("a" * 500 + "z" * 500, 100)
    head, note, tail = cleaned.split("\n")
    assert head == "a" * len(head)
    assert tail == "z" * len(tail)
    assert note == f"... {1000 - len(head) - len(tail)} bytes left out ..."
    assert len(cleaned) > 90


def test_text_is_cut_between_characters():
    cleaned = clean_text("€😀" * 1000, 201)
    head, _, tail = cleaned.split("\n")
    assert set(head + tail) == {"€", "😀"}


def test_the_missing_bytes_are_counted_as_stored():
    head, note, tail = clean_text("\0" * 1000, 100).split("\n")
    assert note == f"... {3000 - len((head + tail).encode())} bytes left out ..."


def test_a_text_that_lies_about_its_length_is_bounded():
    assert len(clean_text(LyingText("x" * 1000), 100)) <= 100


@given(VALUES, st.integers(100, 2000))
def test_cleaned_json_is_json_and_keeps_to_its_bytes(value, limit):
    cleaned = clean_json(value, limit)
    assert size_of(cleaned) <= limit
    assert "\\u0000" not in json.dumps(cleaned).replace("\\\\", "")


@pytest.mark.parametrize("value", [None, True, 0, -1, 2**70, 1.5, "text", [], {}, {"a": [1, {"b": None}]}], ids=repr)
def test_plain_json_stays_as_it_is(value):
    assert clean_json(value) == value


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        (float("nan"), None),
        (float("inf"), None),
        ((1, 2), [1, 2]),
        ({1}, [1]),
        ({1: "a"}, {"1": "a"}),
        ({"k\0": "\ud800"}, {"k␀": "�"}),
        (Decimal("1.10"), "1.10"),
        (UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01 00:00:00+00:00"),
        (b"\xff", "b'\\xff'"),
        (Level.HIGH, 3),
        (Colour.RED, "red"),
        (Unprintable(), "<Unprintable that cannot be shown>"),
        ({"a": HostileDict(b=1)}, "... left out: it could not be read ..."),
    ],
    ids=[
        *(
            "NaN",
            "infinity",
            "tuple",
            "set",
            "integer key",
            "bad text",
            "Decimal",
            "UUID",
            "datetime",
            "bytes",
        ),
        *("IntEnum", "Enum", "unprintable", "hostile dict"),
    ],
)
def test_other_values_become_json(value, cleaned):
    assert clean_json(value) == cleaned


def test_an_integer_too_long_to_print_is_described():
    assert clean_json(10**5000) == "integer of 16610 bits"


def test_a_plain_type_stays_plain():
    cleaned = clean_json([Level.HIGH, LyingText("x")])
    assert [type(item) for item in cleaned] == [int, str]


def test_a_list_that_contains_itself_ends():
    endless = []
    endless.append(endless)
    assert json.dumps(clean_json(endless)).count("[") <= DEPTH + 2


@pytest.mark.parametrize(
    "value",
    [
        "\x01" * 10**7,
        ["x" * 10**6] * 100,
        list(range(10**6)),
        dict.fromkeys(map(str, range(10**6)), "value"),
        {"k" * 10**6: 1},
        [[["deep"] * 1000] * 1000] * 1000,
    ],
    ids=["text", "texts", "numbers", "entries", "key", "lists"],
)
def test_a_huge_value_is_cut_within_a_second(value):
    started = thread_time()
    assert size_of(clean_json(value)) <= JSON_BYTES
    assert thread_time() - started < 1


def test_a_cut_list_and_a_cut_dict_say_so():
    assert "left out" in clean_json(list(range(1000)), 200)[-1]
    assert "left out" in clean_json(dict.fromkeys(map(str, range(1000))), 200)["..."]
