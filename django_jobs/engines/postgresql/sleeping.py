"""Sleeping and being woken: session locks say who sleeps, a notification wakes one. See worker/wake.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import psycopg

from django_jobs import clock
from django_jobs.engines.config import EngineConfig
from django_jobs.polling import wait_readable

from .connected import COMMIT, Connected, Connection

PROOF_SECONDS = 2.0

# With None, psycopg prepares nothing, not even what is executed with ``prepare=True``.
ON_REQUEST = 2**31


class Sleeping(Connected):
    peek_every: timedelta | None = None

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self._notified = False
        self._lying = False
        self._rising = False

    def close(self) -> None:
        self._lying = self._rising = False
        super().close()

    def _begin(self, connection: Connection) -> None:
        connection.add_notify_handler(self._note)

    def wake(self, queue: str) -> None:
        with self._available() as connection:
            self._run(connection, "wake", {"queue": queue})

    def can_listen(self) -> bool:
        if not self.config.listen:
            return False
        with self._available() as connection:
            ((backend,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
            if backend != connection.info.backend_pid:
                return False  # A pooler greeted us with a number of its own: no session is ours for long.
            channel = f"django_jobs_{backend}"
            connection.execute(f'LISTEN "{channel}"')
            connection.execute("SELECT pg_notify(%s, '')", [channel])
        self._is_session = self._hears_itself()
        if self._is_session:
            self._keep_plans()
        return self._is_session

    def _keep_plans(self) -> None:
        """Plan each statement once. Left to itself the server plans every claim anew, because it guesses its LIMIT."""
        with self._available() as connection:
            connection.execute("SET plan_cache_mode = force_generic_plan")
            connection.prepare_threshold = ON_REQUEST

    def _hears_itself(self) -> bool:
        deadline = clock.monotonic() + PROOF_SECONDS
        while not self.take_notification():
            left = deadline - clock.monotonic()
            fileno = self.fileno()
            if left <= 0 or fileno is None:
                return False
            wait_readable(fileno, timeout=left)
        return True

    def lie_down(self, queues: Sequence[str]) -> bool:
        self.get_up()
        with self._available() as connection:
            self._lying = True
            ((locked,),) = self._run(connection, "lie_down", {"queues": list(queues)})
        if not locked:
            self.get_up()
        return bool(locked)

    def get_up(self) -> None:
        if self._lying:
            with self._available() as connection:
                self._send_unlock(connection)

    def get_up_with_claim(self) -> None:
        self._rising = self._lying

    def _send_unlock(self, connection: Connection) -> None:
        self._lying = self._rising = False
        connection.execute("SELECT pg_advisory_unlock_all()")

    def unfinished_writers(self) -> frozenset[int]:
        with self._available() as connection:
            with connection.pipeline():
                connection.execute("BEGIN")
                connection.execute("SELECT pg_current_xact_id()")
                connection.execute(COMMIT)
                writers = connection.execute("SELECT x::text::bigint FROM pg_snapshot_xip(pg_current_snapshot()) x")
            return frozenset(xid for (xid,) in writers.fetchall())

    def fileno(self) -> int | None:
        connection = self._connection
        return None if connection is None or connection.closed else connection.fileno()

    def take_notification(self) -> bool:
        with self._available() as connection:
            connection.pgconn.consume_input()
            while connection.pgconn.notifies():
                self._notified = True
        taken, self._notified = self._notified, False
        return taken

    def _note(self, _: psycopg.Notify) -> None:
        """Notifications also come in beside the answers to statements, after which the socket is silent."""
        self._notified = True
