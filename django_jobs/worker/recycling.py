"""When a process has done enough: after so many runs, or above so much memory. It ends like a drained one.

Memory is compared from the first runs on. A limit below what they have made the process need would end each process
after them, so it is raised, once, and that is said.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from django_jobs import clock
from django_jobs.logs import get_logger

logger = get_logger("django_jobs.worker")

MEGABYTE = 1024 * 1024
LOOK_SECONDS = 1.0
# The first runs import and connect: what a process needs shows after them.
FEWEST_RUNS = 10
# A limit that is too low becomes so many times what the process needs.
HEADROOM = 1.25


class Recycling:
    """``max_memory`` in MB of resident memory. None: no limit."""

    def __init__(self, max_jobs: int | None = None, max_memory: int | None = None) -> None:
        self._max_jobs = max_jobs
        self._max_memory = max_memory
        self._next_look = 0.0
        self._looked = False

    def reason(self, ended: int) -> str:
        """Why this process should be replaced, empty if it should not. ``ended``: how many runs have ended here."""
        if self._max_jobs is not None and ended >= self._max_jobs:
            return f"{ended} jobs have run here (--max-jobs {self._max_jobs})"
        if self._max_memory is None or ended < FEWEST_RUNS or clock.monotonic() < self._next_look:
            return ""
        self._next_look = clock.monotonic() + LOOK_SECONDS
        memory = resident_megabytes()
        if not self._looked:
            self._looked = True
            self._max_memory = self._bearable(memory, self._max_memory)
        return f"it uses {memory} MB (--max-memory {self._max_memory})" if memory > self._max_memory else ""

    def _bearable(self, memory: int, limit: int) -> int:
        if memory <= limit:
            return limit
        raised = int(memory * HEADROOM) + 1
        logger.warning(
            "--max-memory %d is less than the %d MB that this process needs for its first jobs; %d is applied, so that "
            "it is not replaced after every few jobs. Raise --max-memory.",
            limit,
            memory,
            raised,
        )
        return raised


def resident_megabytes() -> int:
    """What this process holds in memory; where the system does not tell, the most that it ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most // MEGABYTE if sys.platform == "darwin" else most // 1024
    return pages * os.sysconf("SC_PAGE_SIZE") // MEGABYTE
