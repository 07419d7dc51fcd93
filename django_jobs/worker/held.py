"""Every lease this process holds: from the claim until the outcome is written or known to be lost."""

from __future__ import annotations

import threading
from uuid import UUID

from .running import Run
from .slots import Slots


class Held:
    """Thread-safe. The loop adds and removes; the renewer reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[UUID, tuple[Slots, Run]] = {}

    def add(self, slots: Slots, runs: list[Run]) -> None:
        with self._lock:
            for run in runs:
                self._runs[run.job.id] = (slots, run)

    def remove(self, job_id: UUID, token: int) -> tuple[Slots, Run] | None:
        """None if that lease is not held: the same job may have been claimed again here."""
        with self._lock:
            held = self._runs.get(job_id)
            if held is None or held[1].job.token != token:
                return None
            return self._runs.pop(job_id)

    def snapshot(self) -> list[tuple[Slots, Run]]:
        with self._lock:
            return list(self._runs.values())

    def find(self, job_id: UUID) -> Run | None:
        with self._lock:
            held = self._runs.get(job_id)
        return held[1] if held else None

    def suspects(self) -> int:
        with self._lock:
            return sum(run.job.lost_runs > 0 for _, run in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)
