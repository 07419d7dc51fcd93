"""How many jobs to hold unstarted: as many as are expected to start within 50 ms, by number and by bytes.

So long jobs are never hoarded by one process, and tiny ones are not starved by round trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from django_jobs import clock
from django_jobs.engines.values import ClaimedJob

HORIZON = 0.05
MOST = 500
MOST_BYTES = 8 * 1024 * 1024
RATE_SECONDS = 0.2
SMOOTHING = 0.5


class Prefetch:
    def __init__(self) -> None:
        self._rate = 0.0
        self._bytes = 256.0
        self._since = clock.monotonic()

    def allowance(self, ended: int) -> int:
        """``ended``: runs that ended since the last call."""
        now = clock.monotonic()
        elapsed, self._since = max(now - self._since, 1e-4), now
        # Weighed by time: one run that ends right after the last call is no rate of ten thousand a second.
        self._rate += (1 - exp(-elapsed / RATE_SECONDS)) * (ended / elapsed - self._rate)
        return int(min(self._rate * HORIZON, MOST, MOST_BYTES / self._bytes))

    def saw(self, jobs: Sequence[ClaimedJob]) -> None:
        """Learn the size of payloads."""
        if jobs:
            mean = sum(len(job.payload) for job in jobs) / len(jobs)
            self._bytes += SMOOTHING * (max(mean, 256.0) - self._bytes)
