"""What goes into an engine and comes out of it, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django_jobs.outcomes import Outcome


class NewJob(NamedTuple):
    """One job to enqueue. ``payload`` and ``context`` are encoded JSON. ``run_at`` is None for now; ``delay`` is
    added to it.

    ``payload_hash`` is given if and only if ``key`` is.
    """

    id: UUID
    queue: str
    type: str
    payload: str
    priority: int
    tenant: str
    max_attempts: int
    context: str = "{}"
    run_at: datetime | None = None
    delay: timedelta = timedelta(0)
    key: str = ""
    payload_hash: bytes = b""
    retention: timedelta = timedelta(days=14)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a job stands after enqueueing. ``asleep``: a worker of the queue must be woken once this is committed."""

    status: str
    asleep: bool = False


class BulkRow(NamedTuple):
    """What differs between the jobs of one bulk: ``offset`` is the seconds after the bulk's run_at."""

    id: UUID
    payload: str
    offset: float = 0.0
    key: str = ""
    payload_hash: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPlaced:
    """``statuses`` in the order of the rows; None where the key is taken."""

    statuses: list[str | None]
    asleep: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """The job that took an idempotency key first; ``free`` when the key has expired and the job is over."""

    job_id: UUID
    payload_hash: bytes
    free: bool


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A leased job. ``payload`` and ``context`` are JSON text. ``given_up``: no worker could take it for longer
    than the patience.
    """

    id: UUID
    token: int
    type: str
    payload: str
    queue: str
    priority: int
    tenant: str
    attempt: int
    max_attempts: int
    lost_runs: int
    context: str
    given_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """``queues`` share ``limit`` slots; the first is served first."""

    queues: tuple[str, ...]
    limit: int
    suspects: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """``written``: job id to final status, or to None if the job goes on. ``busy`` outcomes are to be sent again.

    ``jobs`` has one list for each ClaimRequest, in ready order.
    """

    written: Mapping[UUID, str | None] = field(default_factory=dict)
    busy: Sequence[Outcome] = ()
    lost: Sequence[Outcome] = ()
    jobs: Sequence[Sequence[ClaimedJob]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    renewed: Collection[UUID]
    busy: Collection[UUID]
    lost: Collection[UUID]
    cancelled: Collection[UUID]


@dataclass(frozen=True, slots=True)
class ExpiredLease:
    """A run whose lease ran out or whose process is gone; the row stays locked until its outcome is settled in the
    same call.
    """

    job_id: UUID
    token: int
    queue: str
    type: str
    attempt: int
    max_attempts: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """``queues`` received pending jobs. ``next_due``: time until the next scheduled job, None when there is none."""

    staged: int = 0
    queues: frozenset[str] = frozenset()
    next_due: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is to do, as the leader of maintenance sees it. A process that does not lead learns only when it may
    try again, ``free_in``, and whether the leader can fire what this one can, ``same_build``.

    ``next_due`` and ``next_slot``: time until the next scheduled job and the next look at a schedule, zero or less when
    it is due, None when there is none. ``waiting``: queues with ready jobs although somebody is asleep. ``bulk``: a
    bulk operation wants batches. ``dead_changes``: some are to be added up.
    """

    leads: bool
    free_in: timedelta = timedelta(0)
    same_build: bool = True
    next_due: timedelta | None = None
    next_slot: timedelta | None = None
    lapsed: bool = False
    waiting: frozenset[str] = frozenset()
    bulk: bool = False
    dead_changes: bool = False
