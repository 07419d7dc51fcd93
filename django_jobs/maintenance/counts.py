"""How this process's runs ended, by minute. Collected by the loop, written by the reporter."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django_jobs import clock

BUCKETS = 24

Key = tuple[datetime, str, str, str]


@dataclass(slots=True)
class Count:
    count: int = 0
    total_ms: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    written: int = 0

    def add(self, duration_ms: int) -> None:
        self.count += 1
        self.total_ms += duration_ms
        self.histogram[min(duration_ms.bit_length(), BUCKETS - 1)] += 1


class Counts:
    """The loop adds, the reporter reads. A minute only grows, so it is written as it stands, again and again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Key, Count] = {}
        self._minute = clock.now().replace(second=0, microsecond=0)
        self._minute_until = 0.0

    def add(self, queue: str, type_name: str, outcome: str, duration_ms: int) -> None:
        key = (self._this_minute(), queue, type_name, outcome)
        with self._lock:
            count = self._counts.get(key)
            if count is None:
                count = self._counts[key] = Count()
            count.add(duration_ms)

    def add_lost(self, queue: str, type_name: str) -> None:
        """A run whose lease ran out. Nobody knows how long it went on."""
        self.add(queue, type_name, "lost", 0)

    def _this_minute(self) -> datetime:
        now = clock.monotonic()
        if now >= self._minute_until:
            instant = clock.now()
            # Never back: a minute that was written and forgotten would be written over with less.
            self._minute = max(self._minute, instant.replace(second=0, microsecond=0))
            self._minute_until = now + 60 - instant.second - instant.microsecond / 1e6
        return self._minute

    def unwritten(self) -> dict[Key, Count]:
        """A copy of what has grown since it was last written."""
        with self._lock:
            return {
                key: Count(count.count, count.total_ms, list(count.histogram))
                for key, count in self._counts.items()
                if count.count > count.written
            }

    def note_written(self, written: Mapping[Key, Count]) -> None:
        """Drop past minutes that have been written and did not grow meanwhile."""
        with self._lock:
            for key, count in written.items():
                self._counts[key].written = count.count
            for key, count in list(self._counts.items()):
                if key[0] < self._minute and count.written == count.count:
                    del self._counts[key]
