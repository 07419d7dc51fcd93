"""Which runs a process has started and not settled, in memory that outlives it.

So its supervisor can tell, after a SIGKILL, the jobs that ran from those that only waited in the process, whose
attempt is refunded. A start and an end cost a write of eight bytes each. Without a supervisor there is no ledger.
"""

from __future__ import annotations

import mmap
import os
import tempfile

from .running import Run

CELLS = 4096
BYTES = CELLS * 8


def shared_memory() -> int:
    """A descriptor of memory to be shared with a child. The caller closes it."""
    if hasattr(os, "memfd_create"):
        fileno = os.memfd_create("django_jobs_ledger")
    else:
        with tempfile.TemporaryFile() as file:
            fileno = os.dup(file.fileno())
    os.ftruncate(fileno, BYTES)
    return fileno


class Ledger:
    """Lease tokens, one in each cell. The first cell says that there were once too few of them.

    Thread-safe as lists are: who has taken a cell from ``_free`` is the only one to write it.
    """

    def __init__(self, fileno: int) -> None:
        self._memory = mmap.mmap(fileno, BYTES)
        self._cells = memoryview(self._memory).cast("q")
        self._free = list(range(1, CELLS))
        os.close(fileno)

    def note_started(self, run: Run) -> None:
        try:
            run.cell = self._free.pop()
        except IndexError:
            self._cells[0] = 1
            return
        self._cells[run.cell] = run.job.token

    def note_settled(self, run: Run) -> None:
        """Its outcome is written, or its lease lost."""
        if run.cell:
            self._cells[run.cell] = 0
            self._free.append(run.cell)
            run.cell = 0

    def close(self) -> None:
        self._cells.release()
        self._memory.close()

    def started(self) -> frozenset[int] | None:
        """The tokens of the runs that were going on. None: not all of them are known."""
        return None if self._cells[0] else frozenset(self._cells) - {0}
