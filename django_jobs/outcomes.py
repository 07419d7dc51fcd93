"""What can become of a run, as values. The worker makes them, an engine writes them; neither knows the other.

Each names its lease: the job's id and the token handed out by the claim. An outcome whose token is no longer the job's
changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from .failure import Failure


class DeadReason(StrEnum):
    EXHAUSTED = "exhausted"
    BURIED_BY_HANDLER = "buried_by_handler"
    WORKER_LOST = "worker_lost"
    TIMEOUT = "timeout"
    NO_HANDLER = "no_handler"
    BAD_PAYLOAD = "bad_payload"
    UNRECORDABLE = "unrecordable"


Why = Literal["failed", "snoozed", "handed_back", "untaken", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The job is over: a history row."""

    job_id: UUID
    token: int
    status: Literal["succeeded", "cancelled"] = "succeeded"
    duration_ms: int = 0
    result: Any = None
    metrics: dict[str, Any] | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescheduled:
    """Back to ``scheduled``, ``delay`` from now by the database's clock.

    ``why``: ``failed`` and ``lost`` cost the attempt, the others refund it. A ``lost`` run vanished, so the
    job is a suspect from now on. ``untaken``: no handler or payload fitted this build; the first such time is
    noted on the job, until a build takes it.
    """

    job_id: UUID
    token: int
    delay: timedelta
    why: Why = "failed"
    duration_ms: int = 0
    failure: Failure | None = None

    @property
    def refund(self) -> bool:
        return self.why in ("snoozed", "handed_back", "untaken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Buried:
    """To the dead-letter table."""

    job_id: UUID
    token: int
    reason: DeadReason
    failure: Failure
    fingerprint: str
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The handler's own transaction has completed the job already (``atomic=True``): nothing is left to write."""

    job_id: UUID
    token: int
    duration_ms: int = 0


Outcome = Finished | Rescheduled | Buried
