"""The only place that reads a clock, so that a test can fix all of them at once.

Guarantees: every instant is an aware datetime in UTC; ``monotonic`` never goes back. What it does not
promise: that this machine's clock agrees with the database's. Whatever is compared with a stored
instant is compared by the database, or by a ``DatabaseClock``.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def now() -> datetime:
    """This machine's instant, aware, in UTC."""
    return datetime.now(UTC)


def milliseconds() -> int:
    """This machine's instant in whole milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def monotonic() -> float:
    """Seconds from an arbitrary start; only differences mean something."""
    return time.monotonic()


class DatabaseClock:
    """The database's time, carried on by the monotonic clock from the last sample.

    Before the first sample it is this machine's clock. Any thread may sample or read. A new sample may
    move the time back by what the two clocks drifted apart, and by the difference of two round trips.
    """

    __slots__ = ("_sample",)

    def __init__(self) -> None:
        self._sample: tuple[datetime, float] | None = None

    def sample(self, instant: datetime) -> timedelta:
        """Take ``instant``, just read from the database. Returns how far it is ahead of what the last sample let
        expect: zero for the first one. ValueError if it is naive.
        """
        if instant.tzinfo is None:
            raise ValueError("A database instant must be aware; the connection has to return timestamptz.")
        before, self._sample = self._sample, (instant.astimezone(UTC), monotonic())
        if before is None:
            return timedelta(0)
        return instant - before[0] - timedelta(seconds=self._sample[1] - before[1])

    def now(self) -> datetime:
        """The database's instant, aware, in UTC."""
        if self._sample is None:
            return now()
        instant, sampled_at = self._sample
        return instant + timedelta(seconds=monotonic() - sampled_at)

    def milliseconds(self) -> int:
        """The database's instant in whole milliseconds since 1970."""
        return (self.now() - _EPOCH) // _MILLISECOND
