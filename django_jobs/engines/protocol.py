"""What an engine is: the only code that writes ``jobs`` rows, behind two interfaces with two implementations
each.

*Statements* take the Django connection they run on, so that enqueueing and completing happen in the caller's
transaction.
A *session* owns its connection, connects when first used, and reconnects after trouble; it belongs to one thread.

An engine reads no settings: it gets an EngineConfig. What else goes in and comes out is in ``values``.
Trouble that will pass (server gone, lock not to be had) is EngineUnavailable, after which the same call may simply be
made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.clock import DatabaseClock
from django_jobs.exceptions import DjangoJobsError
from django_jobs.outcomes import Outcome

from .values import (
    BulkPlaced,
    BulkRow,
    ClaimRequest,
    ExpiredLease,
    KeyHolder,
    Look,
    NewJob,
    Placed,
    Renewal,
    Staging,
    Tick,
)

MAX_STAGED = 1000
MAX_RESCUED = 500

# The leadership's name, the share of its lease below which it is renewed, and its longest lease: what seems to last
# longer was taken before the clock was set back.
MAINTENANCE = "maintenance"
RENEW_BELOW = 0.75
LONGEST_TERM = timedelta(seconds=12)


class EngineUnavailable(DjangoJobsError):
    """The database did not do it this time. Nothing is known to be wrong with the request."""


class NoPartition(DjangoJobsError):
    """The history has no partition for today, so a job could not be completed. Make it and run the job again."""


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
