"""UUIDv7 primary keys (RFC 9562, section 5.7): they sort by time, so a day is a range of ids.

The 74 bits after the millisecond are one number. The first id of a millisecond draws it at random, its
highest bit clear; each further id, and each id asked for at an earlier millisecond, adds a random step of
1 to 2**32 to the last id of this process (RFC 9562, section 6.2, method 2). A carry would run into the
millisecond, so the order never breaks.

Guarantees: ids made by ``uuid7`` in one process are strictly increasing, from any thread, whatever the
clock does. Two processes differ in 73 bits of independent randomness per millisecond; a forked child
draws its own. It does not promise secrecy: an id is no password.
"""

from __future__ import annotations

import os
import threading
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from uuid import UUID, SafeUUID

from django_jobs import clock

_TAIL_BITS = 74
_SEED_BITS = _TAIL_BITS - 1
_STEP_BITS = 32
_LOW_BITS = (1 << 62) - 1
_MIDDLE_BITS = 0xFFF
_VERSION = 7 << 76
_VARIANT = 2 << 62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MILLISECOND = 253_402_300_799_999  # 9999-12-31, the last day a datetime can name

_lock = threading.Lock()
_draw = Random(os.urandom(32)).getrandbits
_last = 0


def uuid7(milliseconds: int | None = None) -> UUID:
    """A new id, above every id this process made before.

    ``milliseconds`` since 1970 (default: this machine's clock). An instant before the last id's is
    raised to it; see ``uuid7_at`` for ids of the past. ValueError outside 1970 to 9999.
    """
    global _last
    if milliseconds is None:
        milliseconds = clock.milliseconds()
    if not 0 <= milliseconds <= _LAST_MILLISECOND:
        raise ValueError(f"{milliseconds} ms is not between the years 1970 and 9999.")
    with _lock:
        if milliseconds > _last >> _TAIL_BITS:
            _last = milliseconds << _TAIL_BITS | _draw(_SEED_BITS)
        else:
            _last += 1 + _draw(_STEP_BITS)
        value = _last
    return _assemble(value)


def uuid7_at(instant: datetime) -> UUID:
    """An id of exactly this instant, past or future, unordered within its millisecond.

    For rows written afterwards, such as imported history. It leaves the order of ``uuid7`` alone.
    ValueError if ``instant`` is naive or before 1970.
    """
    return _assemble(_millisecond(instant) << _TAIL_BITS | _draw(_TAIL_BITS))


def uuid7_hex(milliseconds: int) -> str:
    """The 32 hex digits of an id of exactly this millisecond, unordered within it. For writing many rows."""
    bits = _draw(_TAIL_BITS)
    return f"{milliseconds << 80 | _VERSION | bits >> 62 << 64 | _VARIANT | bits & _LOW_BITS:032x}"


def uuid7_range(day: date) -> tuple[UUID, UUID]:
    """The lowest id of ``day`` in UTC and the lowest of the day after: a half-open range."""
    start = datetime.combine(day, time(), UTC)
    return _lowest(_millisecond(start)), _lowest(_millisecond(start) + 86_400_000)


def lowest_uuid7(instant: datetime) -> UUID:
    """The lowest id of this instant's millisecond: what was made from then on is not below. ValueError if naive."""
    return _lowest(_millisecond(instant))


def _millisecond(instant: datetime) -> int:
    if instant.tzinfo is None:
        raise ValueError("An id needs an aware instant.")
    milliseconds = (instant - _EPOCH) // timedelta(milliseconds=1)
    if milliseconds < 0:
        raise ValueError(f"{instant} is before 1970.")
    return milliseconds


def _lowest(milliseconds: int) -> UUID:
    return _assemble(milliseconds << _TAIL_BITS)


def _assemble(value: int) -> UUID:
    """As UUID(int=…) does, without its checks, in a third of the time."""
    assembled = object.__new__(UUID)
    bits = (value >> _TAIL_BITS) << 80 | _VERSION | (value >> 62 & _MIDDLE_BITS) << 64 | _VARIANT | value & _LOW_BITS
    object.__setattr__(assembled, "int", bits)
    object.__setattr__(assembled, "is_safe", SafeUUID.unknown)
    return assembled


def _reseed() -> None:
    """A forked child must not continue its parent's numbers, nor wait for a lock that was held."""
    global _lock, _draw, _last
    _lock = threading.Lock()
    _draw = Random(os.urandom(32)).getrandbits
    _last = (_last >> _TAIL_BITS) + 1 << _TAIL_BITS | _draw(_SEED_BITS)


os.register_at_fork(after_in_child=_reseed)
