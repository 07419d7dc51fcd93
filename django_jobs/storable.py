"""Makes text and values fit for any column: what a handler returned, reported or failed with.

Guarantees: ``clean_text`` and ``clean_json`` never raise. Their results hold no NUL (PostgreSQL refuses it)
and no lone surrogate (UTF-8 cannot carry it), and keep to their size in bytes. ``clean_json`` gives dict,
list, str, int, finite float, bool and None, ``DEPTH`` levels at most. Nothing is promised about types: a
UUID becomes its text. What must come back as it was belongs in a payload.
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Iterable

JSON_BYTES = 64 * 1024
DEPTH = 20

_KEY_BYTES = 200
_OTHER_BYTES = 1000
_INTEGER_BITS = 1024
_RESERVE_BYTES = 60  # for the note that says what was left out
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def clean_text(text: str, limit: int) -> str:
    """``text`` without NUL (shown as ␀) and lone surrogates (shown as �), in ``limit`` bytes of UTF-8.

    Longer text keeps its head and its tail, cut between characters, around a line that says how many bytes
    are missing.
    """
    text = str.__str__(text)  # a subclass could lie about its length
    size = len(text.encode("utf-8", "surrogatepass")) + 2 * text.count("\0")
    if size <= limit:
        return _replace(text)
    note = f"\n... {size - limit} bytes left out ...\n"
    room = limit - len(note) - 8  # the count may grow by some digits
    if room < 0:
        return _head(text, limit)
    head, tail = _head(text, room // 2), _tail(text, room // 2)
    kept = len(head.encode()) + len(tail.encode())
    return f"{head}\n... {size - kept} bytes left out ...\n{tail}"


def _replace(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text.replace("\0", "\u2400"))


def _head(text: str, size: int) -> str:
    return _replace(text[:size]).encode()[:size].decode("utf-8", "ignore")


def _tail(text: str, size: int) -> str:
    encoded = _replace(text[-size:] if size else "").encode()
    return encoded[max(len(encoded) - size, 0) :].decode("utf-8", "ignore")


def visible_text(text: str) -> str:
    """``text`` for a terminal or a log: what would move the cursor, colour or turn it is written as an escape. Line
    feeds and tabs stay.
    """
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def clean_json(value: object, limit: int = JSON_BYTES) -> object:
    """``value`` as plain JSON values, at most ``limit`` bytes as compact UTF-8.

    NUL and lone surrogates are replaced visibly, NaN and infinities by None, enum members by their value,
    other objects by their text. Where size or depth is used up, "... left out ..." stands for the rest.
    """
    try:
        cleaned = _Cleaner(limit - _RESERVE_BYTES).clean(value, DEPTH)
        return cleaned if _size(cleaned) <= limit else "... left out: too large ..."
    except BaseException:  # noqa: BLE001
        return "... left out: it could not be read ..."


class _Cleaner:
    """Spends a number of bytes on a value, depth first, and stops when they are gone."""

    def __init__(self, size: int) -> None:
        self._left = size

    def clean(self, value: object, depth: int) -> object:
        match value:
            case None | True | False:
                return self._spend(value)
            case enum.Enum():
                return self.clean(value.value, depth - 1) if depth else self._text(str(value), _OTHER_BYTES)
            case str():
                return self._text(value, self._left)
            case int():
                return self._integer(value)
            case float():
                return self._spend(float(value) if math.isfinite(value) else None)
            case dict() | list() | tuple() | set() | frozenset() if depth:
                return self._container(value, depth - 1)
        return self._text(_described(value), _OTHER_BYTES)

    def _container(self, value: Iterable[object], depth: int) -> object:
        self._left -= 2
        return self._dict(value, depth) if isinstance(value, dict) else self._list(value, depth)

    def _dict(self, value: dict[object, object], depth: int) -> dict[str, object]:
        cleaned: dict[str, object] = {}
        for count, (key, item) in enumerate(value.items()):
            if self._left <= 0:
                cleaned["..."] = f"... {len(value) - count} entries left out ..."
                self._left -= _RESERVE_BYTES
                break
            self._left -= 2
            text = key if isinstance(key, str) else _described(key)
            cleaned[self._text(text, _KEY_BYTES)] = self.clean(item, depth)
        return cleaned

    def _list(self, value: Iterable[object], depth: int) -> list[object]:
        cleaned: list[object] = []
        for item in value:
            if self._left <= 0:
                cleaned.append("... the rest is left out ...")
                break
            self._left -= 1
            cleaned.append(self.clean(item, depth))
        return cleaned

    def _integer(self, value: int) -> object:
        bits = int.bit_length(value)
        if bits > _INTEGER_BITS:
            return self._text(f"integer of {bits} bits", _OTHER_BYTES)
        return self._spend(int.__add__(value, 0))

    def _text(self, text: str, limit: int) -> str:
        cleaned = clean_text(text, max(min(limit, self._left), 0))
        if _size(cleaned) > self._left:  # JSON writes a control character in six bytes
            cleaned = clean_text(cleaned, max(self._left // 6, 0))
        self._left -= _size(cleaned)
        return cleaned

    def _spend(self, value: object) -> object:
        self._left -= _size(value)
        return value


def _described(value: object) -> str:
    try:
        return str(value)
    except BaseException:  # noqa: BLE001
        return f"<{type(value).__name__} that cannot be shown>"


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
