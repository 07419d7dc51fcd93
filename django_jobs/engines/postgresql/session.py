"""The PostgreSQL session: one psycopg connection of its own, made from Django's parameters, outside Django's
pool.

Every transaction is READ COMMITTED, whatever the server's default. After trouble the call raises
EngineUnavailable and the next call connects anew if it must. The same connection listens for wake-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg

from django_jobs.engines.protocol import MAX_RESCUED, MAX_STAGED, Judge
from django_jobs.engines.sanitising import Written, settle_piecewise
from django_jobs.engines.values import ClaimedJob, ClaimRequest, ExpiredLease, Look, Renewal, Staging, Tick
from django_jobs.logs import get_logger
from django_jobs.outcomes import Outcome

from . import leading
from .connected import BEGIN, COMMIT, Connection, transaction
from .connecting import is_refusal
from .outcome_rows import encode_outcomes, encode_progress
from .queries import query
from .sleeping import Sleeping

logger = get_logger("django_jobs.engine")


class PostgresqlSession(Sleeping):
    # Claim, settle, renew

    def tick(self, outcomes: Sequence[Outcome], claims: Sequence[ClaimRequest]) -> Tick:
        with self._available() as connection:
            try:
                written, jobs = self._in_one_trip(connection, outcomes, claims)
            except Exception as error:
                refuses = partial(is_refusal, connection)
                if not outcomes or not refuses(error):
                    raise
                connection.rollback()
                written = settle_piecewise(outcomes, error, partial(self._settle, connection), refuses)
                jobs = [[] for _ in claims]
            busy, lost = self._missing(connection, outcomes, written)
        final = {job_id: status for (job_id, _), status in written.items()}
        return Tick(written=final, busy=busy, lost=lost, jobs=jobs)

    def _in_one_trip(
        self, connection: Connection, outcomes: Sequence[Outcome], claims: Sequence[ClaimRequest]
    ) -> tuple[Written, list[list[ClaimedJob]]]:
        """The settling has committed before the first claim begins; if it fails, nothing is claimed."""
        settled = committed = None
        claimed: list[psycopg.Cursor[Any]] = []
        rising = self._rising
        try:
            with connection.pipeline():
                if outcomes:
                    connection.execute(BEGIN)
                    settled = self._send_outcomes(connection, outcomes)
                    committed = connection.execute(COMMIT)
                if claims:
                    if self._rising:
                        self._send_unlock(connection)
                    connection.execute(BEGIN)
                    claimed = [self._send_claim(connection, claim) for claim in claims]
                    connection.execute(COMMIT)
        except psycopg.Error as error:
            self._lying = self._lying or rising  # whether the locks were given back is not known
            if settled is None or committed is None or committed.statusmessage != COMMIT or connection.closed:
                raise
            logger.warning("Claiming failed: %s", error)
            connection.rollback()
            return _written(settled.fetchall()), [[] for _ in claims]
        written = _written(settled.fetchall()) if settled else {}
        return written, [self._jobs(cursor.fetchall(), claim) for cursor, claim in zip(claimed, claims, strict=True)]

    def _send_outcomes(self, connection: Connection, outcomes: Sequence[Outcome]) -> psycopg.Cursor[Any]:
        rows = encode_outcomes(outcomes, self.config.worker, self.clock.milliseconds())
        return connection.execute(query("settle"), {"outcomes": rows}, prepare=self._is_session)

    def _send_claim(self, connection: Connection, claim: ClaimRequest) -> psycopg.Cursor[Any]:
        terms = {
            "queues": list(claim.queues),
            "limit": claim.limit,
            "suspects": min(claim.suspects, claim.limit),
            "worker": self.config.worker,
            "lease": self.config.lease,
            "patience": self.config.unknown_patience,
        }
        return connection.execute(query("claim"), terms, prepare=self._is_session)

    def _jobs(self, rows: list[Any], claim: ClaimRequest) -> list[ClaimedJob]:
        if len(rows) > claim.limit:
            logger.critical(
                "A claim for %d jobs took %d. Those that find no free slot go back. Please report this.",
                claim.limit,
                len(rows),
            )
        if rows:
            self.clock.sample(rows[0][-1])
        place = {name: n for n, name in enumerate(claim.queues)}
        rows.sort(key=lambda row: (place[row[4]], -row[5], row[-3], row[-2]))
        return [ClaimedJob(*row[:-3]) for row in rows]

    def _settle(self, connection: Connection, outcomes: Sequence[Outcome]) -> Written:
        with transaction(connection):
            return _written(self._send_outcomes(connection, outcomes).fetchall())

    def _missing(
        self, connection: Connection, outcomes: Sequence[Outcome], written: Written
    ) -> tuple[list[Outcome], list[Outcome]]:
        missing = [outcome for outcome in outcomes if (outcome.job_id, outcome.token) not in written]
        if not missing:
            return [], []
        held = self._held_tokens(connection, [outcome.job_id for outcome in missing])
        busy = [outcome for outcome in missing if held.get(outcome.job_id) == outcome.token]
        return busy, [outcome for outcome in missing if held.get(outcome.job_id) != outcome.token]

    def _held_tokens(self, connection: Connection, ids: list[UUID]) -> dict[UUID, int | None]:
        return dict(self._run(connection, "read_leases", {"ids": ids})) if ids else {}

    def renew(self, leases: Mapping[UUID, int]) -> Renewal:
        terms = {"ids": list(leases), "tokens": list(leases.values()), "lease": self.config.lease}
        with self._available() as connection:
            rows = dict(self._run(connection, "renew", terms))
            busy = self._busy(connection, leases, rows)
            if busy:
                rows |= self._renew_waiting(connection, {job_id: leases[job_id] for job_id in busy})
                busy = self._busy(connection, leases, rows)
        return Renewal(
            renewed=set(rows),
            busy=busy,
            lost=set(leases) - set(rows) - busy,
            cancelled={job_id for job_id, cancelled in rows.items() if cancelled},
        )

    def _busy(self, connection: Connection, leases: Mapping[UUID, int], rows: Mapping[UUID, bool]) -> set[UUID]:
        held = self._held_tokens(connection, [job_id for job_id in leases if job_id not in rows])
        return {job_id for job_id, token in held.items() if token == leases[job_id]}

    def _renew_waiting(self, connection: Connection, leases: Mapping[UUID, int]) -> dict[UUID, bool]:
        """Queue up for rows that somebody else has locked, so that they are renewed before a rescuer gets at them."""
        wait_ms = int(self.config.lock_patience.total_seconds() * 1000)
        terms = {"ids": list(leases), "tokens": list(leases.values()), "lease": self.config.lease}
        try:
            with transaction(connection):
                connection.execute("SELECT set_config('lock_timeout', %s, true)", [f"{wait_ms}ms"])
                return dict(connection.execute(query("renew_waiting"), terms).fetchall())
        except psycopg.errors.LockNotAvailable:
            return {}

    def show_progress(self, values: Mapping[UUID, tuple[int, Any]]) -> None:
        with self._available() as connection:
            self._run(connection, "progress", {"progress": encode_progress(values), "ids": list(values)})

    # Rescue and stage

    def rescue(self, judge: Judge) -> Sequence[Outcome]:
        with self._available() as connection:
            if self._is_new_contact():
                return []
            terms = {"limit": MAX_RESCUED, "grace": self.config.rescue_grace}
            return self._judge_leases(connection, "expired", terms, judge, unless=self._lost_contact)

    def free(self, worker: str, judge: Judge) -> Sequence[Outcome]:
        with self._available() as connection:
            return self._judge_leases(connection, "leases_of", {"limit": MAX_RESCUED, "worker": worker}, judge)

    def _judge_leases(
        self,
        connection: Connection,
        name: str,
        terms: Mapping[str, Any],
        judge: Judge,
        unless: Callable[[], bool] = bool,
    ) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        try:
            with transaction(connection):
                rows = connection.execute(query(name), terms).fetchall()
                if rows:
                    self._note_time(rows[0][-1])
                outcomes = [] if unless() else [judge(ExpiredLease(*row[:-1])) for row in rows]
                if outcomes:
                    self._send_outcomes(connection, outcomes)
        except Exception as error:
            refuses = partial(is_refusal, connection)
            if not outcomes or not refuses(error):
                raise
            settle_piecewise(outcomes, error, partial(self._settle, connection), refuses)
        return outcomes

    def look(self, lease: timedelta) -> Look:
        with self._available() as connection, transaction(connection):
            ((now,),) = connection.execute("SELECT statement_timestamp()").fetchall()
            self._note_time(now)
            return leading.look(connection, self.config, lease, prepare=self._is_session)

    def resign(self) -> bool:
        with self._available() as connection, transaction(connection):
            return leading.resign(connection, self.config.worker)

    def stage(self) -> Staging:
        moved: dict[tuple[str, int], int] = {}
        with self._available() as connection:
            groups = self._run(connection, "due", {})
            for queue, priority, seconds in groups:
                if seconds <= 0:
                    moved[queue, priority] = self._stage_group(connection, queue, priority)
            if any(moved.values()):
                groups = self._run(connection, "due", {})
        # Rows that are due but could not be moved are locked: no reason to come back at once.
        waits = [max(seconds, 0.0) for queue, priority, seconds in groups if moved.get((queue, priority)) != 0]
        return Staging(
            staged=sum(moved.values()),
            queues=frozenset(queue for (queue, _), count in moved.items() if count),
            next_due=timedelta(seconds=min(waits)) if waits else None,
        )

    def _stage_group(self, connection: Connection, queue: str, priority: int) -> int:
        with transaction(connection):
            terms = {"queue": queue, "priority": priority, "limit": MAX_STAGED}
            return connection.execute(query("stage"), terms).rowcount

    def blocker(self, job_id: UUID) -> str:
        with self._available() as connection:
            rows = self._run(connection, "blocker", {"id": job_id})
        return "; ".join(
            f"pid {pid} ({user}, {program}, transaction open for {age} s)" for pid, user, program, age in rows
        )

    def my_leases(self) -> dict[UUID, int | None]:
        with self._available() as connection:
            return dict(self._run(connection, "my_leases", {"worker": self.config.worker}))

    def outstanding(self, queues: Sequence[str], horizon: timedelta) -> bool:
        with self._available() as connection:
            ((answer,),) = self._run(connection, "outstanding", {"queues": list(queues), "horizon": horizon})
        return bool(answer)


def _written(rows: list[Any]) -> Written:
    return {
        (job_id, token): status if kind == "finish" else "dead" if kind == "bury" else None
        for job_id, token, kind, status in rows
    }
