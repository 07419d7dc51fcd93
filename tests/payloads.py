"""Types that payload fields are annotated with, and short ways to encode one field."""

import enum
import typing as t
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, SecretStr, field_validator
from typing_extensions import TypedDict

from django_jobs.exceptions import InvalidPayload
from django_jobs.payload import Signature

LIMIT = 256 * 1024
KOLKATA = ZoneInfo("Asia/Kolkata")
BERLIN = ZoneInfo("Europe/Berlin")


class Run:
    """Stands for the type that handlers annotate their first parameter with."""


class Colour(enum.Enum):
    RED = "red"
    TWO = 2


class Shade(enum.StrEnum):
    DARK = "dark"


class Level(enum.IntEnum):
    HIGH = 3


class Pair(t.NamedTuple):
    first: int
    second: str


class Address(TypedDict):
    street: str
    number: int


@dataclass
class Point:
    x: int
    y: float = 1.0
    tags: list[str] = field(default_factory=list)


@dataclass
class Node:
    text: str = ""
    child: "Node | None" = None


class Invoice(BaseModel):
    number: int
    total: float = 0.0
    content: bytes = b""


class Trimmed(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def grows(cls, value):
        return value + "!"


class Login(BaseModel):
    password: SecretStr


class Moment(datetime):
    """What freezegun and pendulum give instead of datetime."""


def signature_of(annotation):
    def handler(x): ...

    handler.__annotations__ = {"x": annotation}
    return Signature.of(handler, run_type=Run)


def encoded(annotation, value, limit=LIMIT):
    return signature_of(annotation).encode({"x": value}, limit=limit)


def round_trip(annotation, value):
    signature = signature_of(annotation)
    return signature.decode(signature.encode({"x": value}, limit=LIMIT))["x"]


def refusal(annotation, value, limit=LIMIT):
    with pytest.raises(InvalidPayload) as caught:
        encoded(annotation, value, limit)
    return str(caught.value).split(": ", 1)[1]


def nested(depth, wrap=lambda inner: [inner]):
    value = 1
    for _ in range(depth):
        value = wrap(value)
    return value
