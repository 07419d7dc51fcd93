"""How this process's runs ended, by minute. Collected by the loop, written by the reporter."""

from __future__ import annotations

import threading
from collections.abc import Iterable
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

    def add(self, duration_ms: int) -> None:
        self.count += 1
        self.total_ms += duration_ms
        self.histogram[min(duration_ms.bit_length(), BUCKETS - 1)] += 1


class Counts:
    """Thread-safe. A minute's numbers only grow, so the reporter writes them as they stand and may write them again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Key, Count] = {}
        self._minute = clock.now()
        self._minute_until = 0.0

    def add(self, queue: str, type_name: str, outcome: str, duration_ms: int) -> None:
        key = (self._this_minute(), queue, type_name, outcome)
        with self._lock:
            count = self._counts.get(key)
            if count is None:
                count = self._counts[key] = Count()
            count.add(duration_ms)

    def _this_minute(self) -> datetime:
        now = clock.monotonic()
        if now >= self._minute_until:
            instant = clock.now()
            self._minute = instant.replace(second=0, microsecond=0)
            self._minute_until = now + 60 - instant.second - instant.microsecond / 1e6
        return self._minute

    def snapshot(self) -> dict[Key, Count]:
        with self._lock:
            return {key: Count(c.count, c.total_ms, list(c.histogram)) for key, c in self._counts.items()}

    def forget(self, written: Iterable[Key]) -> None:
        """Drop past minutes that have been written."""
        with self._lock:
            for key in written:
                self._counts.pop(key, None)
