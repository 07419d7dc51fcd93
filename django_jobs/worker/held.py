"""Every lease this process holds: from the claim until the outcome is written or known to be lost.

The same job may be here twice: a run that lost its lease goes on while the job has been claimed again.
"""

from __future__ import annotations

import threading
from uuid import UUID

from .ledger import Ledger
from .running import Run
from .slots import Slots


class Held:
    """Thread-safe. The loop adds and removes; the renewer reads."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._runs: dict[tuple[UUID, int], tuple[Slots, Run]] = {}

    def add(self, slots: Slots, runs: list[Run]) -> None:
        with self._lock:
            for run in runs:
                self._runs[run.job.id, run.job.token] = (slots, run)

    def remove(self, job_id: UUID, token: int) -> tuple[Slots, Run] | None:
        """None if that lease is not held (any more)."""
        with self._lock:
            found = self._runs.pop((job_id, token), None)
        if found is not None and self._ledger is not None:
            self._ledger.note_settled(found[1])
        return found

    def snapshot(self) -> list[tuple[Slots, Run]]:
        with self._lock:
            return list(self._runs.values())

    def __contains__(self, run: Run) -> bool:
        with self._lock:
            return (run.job.id, run.job.token) in self._runs

    def suspects(self) -> int:
        """How many jobs that were lost before are running or waiting here; one that has ended is no danger any more."""
        with self._lock:
            return sum(run.job.lost_runs > 0 and not run.ended for _, run in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)
