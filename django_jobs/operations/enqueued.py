"""The answer to an enqueueing."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID


class EnqueuedJob(NamedTuple):
    """``status`` is ``pending`` or ``scheduled``, or wherever the first job is by now if this is its ``duplicate``."""

    id: UUID
    status: str
    duplicate: bool = False
