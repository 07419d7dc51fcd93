"""The answer to an enqueueing."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class EnqueuedJob:
    """``status`` is ``pending`` or ``scheduled``, or wherever the first job is by now if this is its ``duplicate``."""

    id: UUID
    status: str
    duplicate: bool = False
