"""The portable session: a Django connection of its own, and an IMMEDIATE transaction for whatever writes.

Nobody can wake it; instead it is asked often whether anybody else committed anything. "Database is locked"
is EngineUnavailable, and counts as lost contact: who holds a lease could not renew it meanwhile either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import Error, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs import clock
from django_jobs.chunks import chunks
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import MAX_RESCUED, EngineUnavailable, Judge
from django_jobs.engines.sanitising import Written, settle_piecewise
from django_jobs.engines.values import ClaimedJob, ClaimRequest, ExpiredLease, Look, Renewal, Staging, Tick
from django_jobs.logs import get_logger
from django_jobs.models import BulkOperation, BulkState, DeadGroupChange, Job, JobStatus
from django_jobs.outcomes import Outcome

from . import leading, staging
from .claiming import SUSPECT, USUAL, anything_ready, claim, paused_queues
from .connecting import commits_of_others, connect, is_locked, is_refusal, release_cursors, standing_in
from .rows import CHUNK
from .settling import settle

logger = get_logger("django_jobs.engine")


class PortableSession:
    peek_every: timedelta | None = timedelta(milliseconds=50)

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.clock = clock.DatabaseClock()
        self.generation = 0
        self.calling = False
        self._connection: BaseDatabaseWrapper | None = None
        self._writable_since: float | None = None
        self._looked_at = clock.monotonic()
        self._found_jobs = True
        self._seen_commits = 0

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._writable_since = None
        if connection is not None:
            connection.close()

    @contextmanager
    def _available(self) -> Iterator[BaseDatabaseWrapper]:
        if self._connection is None:
            self._connection = connect(self.config.alias)
        with standing_in(self._connection):
            self.calling = True
            try:
                yield self._connection
            except Error as error:
                self._writable_since = None
                release_cursors(error)
                if not is_locked(error):
                    self._connection.close()
                raise EngineUnavailable(f"{type(error).__name__}: {error}") from error
            finally:
                self.calling = False

    def _transaction(self) -> transaction.Atomic:
        return transaction.atomic(using=self.config.alias)

    # Claim, settle, renew

    def tick(self, outcomes: Sequence[Outcome], claims: Sequence[ClaimRequest]) -> Tick:
        with self._available() as connection:
            written = self._settle_all(connection, outcomes) if outcomes else {}
            try:
                jobs = self._claim_all(connection, claims)
            except Error as error:
                if not outcomes:
                    raise
                release_cursors(error)
                logger.warning("Claiming failed: %s", error)
                jobs = [[] for _ in claims]
        lost = [outcome for outcome in outcomes if (outcome.job_id, outcome.token) not in written]
        return Tick(written={job_id: status for (job_id, _), status in written.items()}, lost=lost, jobs=jobs)

    def _settle_all(self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> Written:
        def settle_some(some: Sequence[Outcome]) -> Written:
            with self._transaction():
                return settle(connection, some, self.config.worker, clock.now())

        try:
            return settle_some(outcomes)
        except Exception as error:
            if not is_refusal(error):
                raise
            return settle_piecewise(outcomes, error, settle_some, is_refusal)

    def _claim_all(self, connection: BaseDatabaseWrapper, claims: Sequence[ClaimRequest]) -> list[list[ClaimedJob]]:
        """An idle worker only looks: the write lock is for those who have something to write."""
        if not claims:
            return []
        self._seen_commits = commits_of_others(connection)
        queues = {queue for request in claims for queue in request.queues}
        if not self._found_jobs and not anything_ready(self.config.alias, queues):
            return [[] for _ in claims]
        with self._transaction():
            jobs = [claim(connection, request, self.config, clock.now()) for request in claims]
        self._found_jobs = any(jobs)
        return jobs

    def renew(self, leases: Mapping[UUID, int]) -> Renewal:
        cancelled: dict[UUID, bool] = {}
        with self._available(), self._transaction():
            until = clock.now() + self.config.lease
            for chunk in chunks(leases, CHUNK):
                held = Job.objects.using(self.config.alias).filter(id__in=chunk, lease_token__isnull=False)
                ours = {
                    job_id: cancel_requested_at is not None
                    for job_id, token, cancel_requested_at in held.values_list(
                        "id", "lease_token", "cancel_requested_at"
                    )
                    if token == leases[job_id]
                }
                held.filter(id__in=list(ours)).update(locked_until=until)
                cancelled |= ours
        return Renewal(
            renewed=set(cancelled),
            busy=set(),
            lost=set(leases) - set(cancelled),
            cancelled={job_id for job_id, asked in cancelled.items() if asked},
        )

    def show_progress(self, values: Mapping[UUID, tuple[int, Any]]) -> None:
        with self._available(), self._transaction():
            jobs = Job.objects.using(self.config.alias)
            for job_id, (token, value) in values.items():
                jobs.filter(id=job_id, lease_token=token).update(progress=value)

    # Rescue and stage

    def rescue(self, judge: Judge) -> Sequence[Outcome]:
        """Takes the write lock whenever there are leases: who could not write could not renew them either, so only
        having had that lock is contact. To have waited for it is none. A lease must have run out before that: this
        process may be stopped while it has the lock, and then nobody can renew.
        """
        with self._available() as connection:
            asked_at, now = clock.monotonic(), self._note_time()
            leased = Job.objects.using(self.config.alias).filter(status=JobStatus.PROCESSING)
            if not leased.exists():
                return []
            with self._transaction():
                if not self._was_writable(asked_at):
                    return []
                return self._judge_leases(connection, _expired(leased, now), judge)

    def free(self, worker: str, judge: Judge) -> Sequence[Outcome]:
        with self._available() as connection, self._transaction():
            held = Job.objects.using(self.config.alias).filter(status=JobStatus.PROCESSING, locked_by=worker)
            return self._judge_leases(connection, _leases(held), judge)

    def _judge_leases(self, connection: BaseDatabaseWrapper, leases: Any, judge: Judge) -> Sequence[Outcome]:
        outcomes = [judge(ExpiredLease(*row)) for row in leases[:MAX_RESCUED]]
        settle(connection, outcomes, self.config.worker, clock.now())
        return outcomes

    def _was_writable(self, asked_at: float) -> bool:
        """Had everybody the grace to renew before we asked for the lock that we now have?"""
        grace = self.config.rescue_grace.total_seconds()
        if self._writable_since is None or clock.monotonic() - asked_at > grace:
            self._writable_since = clock.monotonic()
        return max(asked_at - self._writable_since, 0.0) >= grace

    def _note_time(self) -> datetime:
        """Where the clock was set ahead, leases lapse that nobody could renew: that is no contact. Nor is it where this
        process stood still: another of its sessions may have had the lock all the while.
        """
        now, longest = clock.now(), self.config.longest_silence
        silence = timedelta(seconds=clock.monotonic() - self._looked_at)
        if max(self.clock.sample(now), silence) > longest:
            self._writable_since = None
        self._looked_at = clock.monotonic()
        return now

    def look(self, lease: timedelta) -> Look:
        """To lead is to write each few seconds, which is contact too. To see that we still lead is none."""
        with self._available():
            asked_at, now = clock.monotonic(), self._note_time()
            followed, written = leading.lead(self.config, lease, now)
            if followed is not None:
                return followed
            if written:
                self._was_writable(asked_at)
            leased = Job.objects.using(self.config.alias).filter(status=JobStatus.PROCESSING)
            return Look(
                leads=True,
                next_due=staging.next_due(self.config.alias, now),
                next_slot=leading.next_slot(self.config.alias, now),
                lapsed=_expired(leased, now).exists(),
                bulk=BulkOperation.objects.using(self.config.alias).filter(state=BulkState.RUNNING).exists(),
                dead_changes=DeadGroupChange.objects.using(self.config.alias).exists(),
            )

    def resign(self) -> bool:
        with self._available():
            return leading.resign(self.config.alias, self.config.worker, clock.now())

    def stage(self) -> Staging:
        with self._available() as connection:
            return staging.stage(connection, clock.now())

    def blocker(self, job_id: UUID) -> str:
        """Nobody: a writer locks the whole file here, never a row."""
        return ""

    def my_leases(self) -> dict[UUID, int | None]:
        with self._available():
            mine = Job.objects.using(self.config.alias).filter(
                status=JobStatus.PROCESSING, locked_by=self.config.worker
            )
            return dict(mine.values_list("pk", "lease_token"))

    def outstanding(self, queues: Sequence[str], horizon: timedelta) -> bool:
        with self._available():
            now = clock.now()
            jobs = Job.objects.using(self.config.alias)
            open_queues = set(queues) - paused_queues(self.config.alias, queues, now)
            # In one statement: a job that changes its status between two looks would be seen by neither.
            running = jobs.filter(status=JobStatus.PROCESSING, queue__in=queues)
            pending = jobs.filter(status=JobStatus.PENDING, queue__in=open_queues)
            due = jobs.filter(status=JobStatus.SCHEDULED, queue__in=open_queues, run_at__lte=now + horizon)
            ways = (running, pending.filter(USUAL), pending.filter(SUSPECT), due)
            first, *others = (way.order_by().values("id") for way in ways)
            return first.union(*others, all=True).exists()

    # Sleeping and waking

    def wake(self, queue: str) -> None:
        pass

    def can_listen(self) -> bool:
        return False

    def lie_down(self, queues: Sequence[str]) -> bool:
        return False

    def get_up_with_claim(self) -> None:
        pass

    def get_up(self) -> None:
        pass

    def unfinished_writers(self) -> frozenset[int]:
        return frozenset()

    def fileno(self) -> int | None:
        return None

    def take_notification(self) -> bool:
        """Has another connection committed since the last claim began to look?"""
        with self._available() as connection:
            seen, self._seen_commits = self._seen_commits, commits_of_others(connection)
        return seen != self._seen_commits


def _expired(leased: Any, now: datetime) -> Any:
    return _leases(leased.filter(locked_until__lt=now))


def _leases(leased: Any) -> Any:
    columns = ("id", "lease_token", "queue", "type", "attempts", "max_attempts", "locked_by")
    return leased.order_by("locked_until").values_list(*columns)
