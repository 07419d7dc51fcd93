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

    def add(self, queue: str, type_name: str, outcome: str, duration_ms: int) -> None:
        minute = clock.now().replace(second=0, microsecond=0)
        with self._lock:
            self._counts.setdefault((minute, queue, type_name, outcome), Count()).add(duration_ms)

    def snapshot(self) -> dict[Key, Count]:
        with self._lock:
            return {key: Count(c.count, c.total_ms, list(c.histogram)) for key, c in self._counts.items()}

    def forget(self, written: Iterable[Key]) -> None:
        """Drop past minutes that have been written."""
        with self._lock:
            for key in written:
                self._counts.pop(key, None)
