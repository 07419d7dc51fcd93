"""A connection of the session's own: made when it is first needed, judged after trouble, replaced when it must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import psycopg

from django_jobs import clock
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import EngineUnavailable

from .connecting import connect, repair
from .queries import query

Connection = psycopg.Connection[Any]

# Not READ WRITE: who told the server to be read-only, perhaps after a failover, is not to be overruled.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
COMMIT = "COMMIT"


class Connected:
    """What every session is built on. ``_is_session``: the server's session is ours, no pooler is in between."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.clock = clock.DatabaseClock()
        self._connection: Connection | None = None
        self.generation = 0
        self._in_contact_since = 0.0
        self._answered_at = 0.0
        self.calling = False
        self._is_session = False

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._is_session = False
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _begin(self, connection: Connection) -> None:
        """Called with each new connection."""

    @contextmanager
    def _available(self) -> Iterator[Connection]:
        self.calling = True
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._begin(self._connection)
                self.generation += 1
                self._in_contact_since = self._answered_at = clock.monotonic()
            yield self._connection
            self._note_contact()
        except psycopg.Error as error:
            if self._connection is None or not repair(self._connection, error):
                self.close()
            raise EngineUnavailable(f"{type(error).__name__}: {error}".strip()) from error
        finally:
            self.calling = False

    def _connect(self) -> Connection:
        """What a project's backend does first, such as to fetch a password, may fail in its own way."""
        try:
            return connect(self.config.alias, self.config.patience)
        except psycopg.Error:
            raise
        except Exception as error:
            raise EngineUnavailable(f"no connection could be made: {type(error).__name__}: {error}") from error

    def _note_contact(self) -> None:
        """A long silence, whoever kept it, is no contact: leases may have lapsed that nobody could renew."""
        if self._was_silent():
            self._in_contact_since = clock.monotonic()
        self._answered_at = clock.monotonic()

    def _was_silent(self) -> bool:
        return clock.monotonic() - self._answered_at > self.config.longest_silence.total_seconds()

    def _note_time(self, instant: datetime) -> None:
        """The server's. Where its clock was set ahead, leases lapse that nobody could renew: that is no contact."""
        if self.clock.sample(instant) > self.config.longest_silence:
            self._in_contact_since = clock.monotonic()

    def _is_new_contact(self) -> bool:
        """Had those who hold leases no time yet to renew them?"""
        return clock.monotonic() - self._in_contact_since < self.config.rescue_grace.total_seconds()

    def _lost_contact(self) -> bool:
        """Was there none during the call that goes on, or does its answer show a step of the clock?"""
        return self._was_silent() or self._is_new_contact()

    def _run(self, connection: Connection, name: str, terms: Mapping[str, Any]) -> list[Any]:
        """One statement in a transaction of its own, in one trip."""
        with connection.pipeline():
            connection.execute(BEGIN)
            cursor = connection.execute(query(name), terms, prepare=self._is_session)
            connection.execute(COMMIT)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    connection.execute(BEGIN)
    try:
        yield
    except BaseException:
        if not connection.closed:
            connection.rollback()
        raise
    connection.execute(COMMIT)
