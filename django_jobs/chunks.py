"""Any number of things, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Iterable[T], size: int | None) -> Iterator[list[T]]:
    """Lists of ``size`` items, the last one perhaps shorter; None: one of all. Takes no more items than it yields."""
    stream = iter(items)
    while chunk := list(islice(stream, size)):
        yield chunk
