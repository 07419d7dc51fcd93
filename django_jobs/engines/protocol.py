"""What an engine is: the only code that writes ``jobs`` rows, behind two interfaces with two implementations
each.

*Statements* take the Django connection they run on, so that enqueueing and completing happen in the caller's
transaction.
A *session* owns its connection, connects when first used, and reconnects after trouble; it belongs to one thread.

An engine reads no settings: it gets an EngineConfig. Trouble that will pass (server gone, lock not to be had)
is EngineUnavailable, after which the same call may simply be made again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.clock import DatabaseClock
from django_jobs.exceptions import DjangoJobsError
from django_jobs.outcomes import Outcome

MAX_STAGED = 1000
MAX_RESCUED = 500
SHORTEST_PATIENCE = timedelta(seconds=5)

# The leadership's name, and the share of its lease below which it is renewed.
MAINTENANCE = "maintenance"
RENEW_BELOW = 0.75


class EngineUnavailable(DjangoJobsError):
    """The database did not do it this time. Nothing is known to be wrong with the request."""


class NoPartition(DjangoJobsError):
    """The history has no partition for today, so a job could not be completed. Make it and run the job again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """``worker`` names the process in the rows it leases; new at each process start. ``build``: fingerprint of what it
    can fire, see operations/build.py. ``renews``: the session does nothing but renew leases.
    """

    alias: str
    worker: str = ""
    lease: timedelta = timedelta(seconds=60)
    unknown_patience: timedelta = timedelta(hours=24)
    listen: bool = True
    build: str = ""
    renews: bool = False

    @property
    def rescue_grace(self) -> timedelta:
        """Unbroken contact needed before a lapsed lease counts against its holder."""
        return self.lease / 3

    @property
    def patience(self) -> timedelta:
        """How long a call waits for the database's answer before the connection counts as dead.

        A renewal begins when a third of the lease is over; so two that stay without an answer leave time for a third,
        and one also if the lease is short. What others ask may take the server longer than a quarter of a short one.
        """
        quarter = self.lease / 4
        return quarter if self.renews else max(quarter, SHORTEST_PATIENCE)

    @property
    def lock_patience(self) -> timedelta:
        """How long a renewal queues for a row that somebody has locked: shorter than ``patience``."""
        return self.lease / 5


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


class Judge(Protocol):
    """Decides what becomes of a lost run."""

    def __call__(self, lease: ExpiredLease, /) -> Outcome: ...


class Statements(Protocol):
    """Each runs on ``connection``, in whatever transaction is open there."""

    def enqueue(self, connection: BaseDatabaseWrapper, job: NewJob) -> Placed | None:
        """None when the key is taken."""
        ...

    def enqueue_many(
        self, connection: BaseDatabaseWrapper, shared: NewJob, rows: Iterable[BulkRow], *, keyed: bool
    ) -> BulkPlaced:
        """Any number of jobs with the options of ``shared``. The caller opens the transaction."""
        ...

    def enqueue_each(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[Placed]:
        """Some hundred jobs without keys, each with options of its own, in their order."""
        ...

    def key_holder(self, connection: BaseDatabaseWrapper, queue: str, key: str) -> KeyHolder | None: ...

    def free_key(self, connection: BaseDatabaseWrapper, queue: str, key: str, job_id: UUID) -> None: ...

    def wake(self, connection: BaseDatabaseWrapper, queue: str) -> None:
        """Wake one sleeping worker of the queue. Sent outside transactions."""
        ...

    def begin_run(self, connection: BaseDatabaseWrapper) -> None:
        """The first statement of an ``atomic=True`` run: READ COMMITTED, whatever the project's default."""
        ...

    def complete_within(
        self,
        connection: BaseDatabaseWrapper,
        job_id: UUID,
        token: int,
        *,
        history_id: UUID,
        duration_ms: int,
        result: Any,
        metrics: Any,
    ) -> bool:
        """The last statement of an ``atomic=True`` run. False: the lease is lost, roll back. May raise NoPartition."""
        ...

    def requeue_dead(
        self, connection: BaseDatabaseWrapper, ids: Sequence[UUID], delay: timedelta
    ) -> list[tuple[UUID, str]]:
        """Move dead jobs back to ``jobs``; returns (id, queue) of those moved."""
        ...

    def discard_dead(self, connection: BaseDatabaseWrapper, ids: Mapping[UUID, UUID]) -> list[UUID]:
        """Make history of dead jobs (job id to history id); returns those moved. May raise NoPartition."""
        ...

    def fold_dead_groups(self, connection: BaseDatabaseWrapper, limit: int, release: str) -> int:
        """Add up to ``limit`` changes of dead jobs up into their groups, in one transaction; returns how many."""
        ...

    def wait_briefly(self, connection: BaseDatabaseWrapper) -> None:
        """In the transaction that is open, give up on locks after two seconds."""
        ...

    def stop_after(self, connection: BaseDatabaseWrapper, limit: timedelta) -> None:
        """In the transaction that is open, give up on statements that take longer."""
        ...

    def was_stopped(self, error: DatabaseError) -> bool:
        """Is this what ``stop_after`` does to a statement?"""
        ...

    def add_partitions(self, connection: BaseDatabaseWrapper, days: Iterable[date]) -> int:
        """Make what history needs to take these days; returns how many partitions are new."""
        ...

    def prune_history(self, connection: BaseDatabaseWrapper, before: date, limit: int) -> int:
        """Remove a bounded part of the history of days before this one: a partition, or up to ``limit`` rows. Returns
        how many of these; 0 when nothing is left. Outside transactions. Raises OperationalError when locks stand in the
        way.
        """
        ...

    def freeze_history(self, connection: BaseDatabaseWrapper, before: date) -> int:
        """Have the history of days before this one settled for good; returns how many partitions were new to it."""
        ...

    def server_time(self, connection: BaseDatabaseWrapper) -> datetime:
        """The database's time."""
        ...


class Session(Protocol):
    """One thread's own connection to the jobs database.

    ``clock`` knows the database's time. ``generation`` counts its connections. ``peek_every``: how often
    ``take_notification`` must be asked because there is no ``fileno`` to wait on; None where there is one.
    ``calling``: is a call to the database going on? Read by other threads, to tell waiting for it from standing still.
    """

    clock: DatabaseClock
    generation: int
    calling: bool
    peek_every: timedelta | None

    def close(self) -> None: ...

    def tick(self, outcomes: Sequence[Outcome], claims: Sequence[ClaimRequest]) -> Tick:
        """Settle all outcomes, then claim: two transactions. What the server refuses is recorded sanitised."""
        ...

    def renew(self, leases: Mapping[UUID, int]) -> Renewal:
        """Prolong these leases (job id to token)."""
        ...

    def show_progress(self, values: Mapping[UUID, tuple[int, Any]]) -> None:
        """Store progress (job id to token and JSON value). Rows that are locked or lost are left alone."""
        ...

    def rescue(self, judge: Judge) -> Sequence[Outcome]:
        """Settle up to MAX_RESCUED lapsed leases as ``judge`` says; nothing before ``rescue_grace`` of contact."""
        ...

    def free(self, worker: str, judge: Judge) -> Sequence[Outcome]:
        """Settle up to MAX_RESCUED leases of a process that is known to be gone, lapsed or not, as ``judge`` says.

        Rows that are locked are left out: what the process sent last may still be committing.
        """
        ...

    def look(self, lease: timedelta) -> Look:
        """Take or renew the leadership of maintenance for so long, unless another process has it; if this one leads,
        look for what is to be done. Nothing is moved. Only work is saved: two leaders would do no harm.
        """
        ...

    def resign(self) -> bool:
        """Give the leadership up at once; False if this process did not have it."""
        ...

    def stage(self) -> Staging:
        """Move due jobs to pending, at most MAX_STAGED of each queue and priority."""
        ...

    def blocker(self, job_id: UUID) -> str:
        """Who holds the lock of this job's row, in words; empty if nobody can be named."""
        ...

    def my_leases(self) -> dict[UUID, int | None]:
        """Job id to token of every lease of ``config.worker``: after an outage some may be unknown to it."""
        ...

    def outstanding(self, queues: Sequence[str], horizon: timedelta) -> bool:
        """Is anything pending, processing, or scheduled within ``horizon``?"""
        ...

    def wake(self, queue: str) -> None: ...

    # Sleeping: see worker/wake.py.

    def can_listen(self) -> bool:
        """Prove that a notification sent here arrives here."""
        ...

    def lie_down(self, queues: Sequence[str]) -> bool:
        """Be seen as a sleeper of these queues by enqueuers from now on."""
        ...

    def get_up(self) -> None:
        """Be no sleeper any more. Does nothing if it is not."""
        ...

    def get_up_with_claim(self) -> None:
        """The same, in the trip of the next claim and before it; ``get_up`` does it now if no claim comes."""
        ...

    def unfinished_writers(self) -> frozenset[int]:
        """Transactions that may have enqueued before ``lie_down`` and have not ended."""
        ...

    def fileno(self) -> int | None:
        """Readable when a notification may have come. None: there is nothing to wait on."""
        ...

    def take_notification(self) -> bool:
        """Take what has arrived; True if somebody wants this process awake."""
        ...
