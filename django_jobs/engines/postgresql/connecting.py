"""Making connections of the worker's own, and judging their errors.

No call waits for ever: a peer that vanished, or a proxy that swallows what it is given, costs the connection after
the session's patience.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, timedelta
from math import inf
from typing import Any, TypeVar

import psycopg
from django.db import connections
from psycopg import errors, sql

from django_jobs import clock
from django_jobs.logs import get_logger
from django_jobs.models.partitions import add_partitions, partition_statements

logger = get_logger("django_jobs.engine")

# Seconds. What takes longer than the patience is of no use; libpq takes anything below 2 for 2.
SHORTEST_CONNECT_TIMEOUT, CONNECT_TIMEOUT = 2, 10
# A peer that vanished without a word is noticed within half a minute, not after the kernel's two hours.
KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

# Values that cannot be stored: data exception, integrity constraint violation.
REFUSAL_CLASSES = ("22", "23")
# After these the connection itself is as good as before: a refusal, a rolled back transaction, a lock not to be had.
HARMLESS_CLASSES = (*REFUSAL_CLASSES, "40", "55")


# The server's limits for everybody else. An idle listener is no leak, and what a call may take is our own business.
LIMITS = [
    "statement_timeout",
    "transaction_timeout",
    "idle_session_timeout",
]
# Only where the session is ours: through a pooler the setting would stay with a connection that others use next.
LIFT_LIMITS = """
SELECT set_config(name, '0', false) FROM pg_settings
 WHERE pg_backend_pid() = %s AND name = ANY (%s) AND setting <> '0'
"""
# A process that stands still, or whose machine is gone, in the middle of a transaction must not keep its locks: the
# server would notice the dead peer after two hours, and until then nobody could lead, stage those jobs or rescue them.
LIMIT_IDLE = "SELECT set_config('idle_in_transaction_session_timeout', %s, false) WHERE pg_backend_pid() = %s"
LONGEST_LIMIT = 2**31 - 1  # milliseconds, in the server's integer

Answer = TypeVar("Answer")


class OwnConnection(psycopg.Connection[Any]):
    """Closes itself when the server has not answered a call for ``patience`` seconds."""

    patience = inf

    def wait(self, gen: Generator[Any, Any, Answer], *args: Any, **kwargs: Any) -> Answer:
        return super().wait(self._within_patience(gen), *args, **kwargs)

    def _within_patience(self, gen: Generator[Any, Any, Answer]) -> Generator[Any, Any, Answer]:
        """psycopg comes back ten times a second while there is nothing to read."""
        end = clock.monotonic() + self.patience
        try:
            wanted = next(gen)
            while True:
                wanted = gen.send((yield wanted))
                if clock.monotonic() > end:
                    self.close()
                    raise psycopg.OperationalError(f"the database has not answered for {self.patience:g} s")
        except StopIteration as done:
            answer: Answer = done.value
            return answer


def connect(alias: str, patience: timedelta) -> OwnConnection:
    """A connection in autocommit mode with Django's parameters for ``alias``."""
    wrapper = connections[alias]
    parameters = wrapper.get_connection_params()
    for ours in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(ours, None)
    parameters = {"connect_timeout": _connect_timeout(patience), **KEEPALIVE, **parameters}
    connection = OwnConnection.connect(autocommit=True, prepare_threshold=None, **parameters)
    connection.patience = patience.total_seconds()
    try:
        _prepare(connection, wrapper.settings_dict["OPTIONS"].get("assume_role"))
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_timeout(patience: timedelta) -> int:
    return max(min(int(patience.total_seconds()), CONNECT_TIMEOUT), SHORTEST_CONNECT_TIMEOUT)


def _prepare(connection: OwnConnection, role: str | None) -> None:
    if role:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    _change_limits(connection)


def _change_limits(connection: OwnConnection) -> None:
    connection.execute(LIFT_LIMITS, [connection.info.backend_pid, LIMITS])
    milliseconds = str(min(int(connection.patience * 1000), LONGEST_LIMIT))
    connection.execute(LIMIT_IDLE, [milliseconds, connection.info.backend_pid])


def stand_alone(alias: str, patience: timedelta) -> None:
    """Give the calling thread a Django connection of its own for ``alias``.

    It is outside of Django's pool, which handlers may empty; it notices a dead peer; it is READ COMMITTED and without
    the server's limits for everybody else. Its times are in UTC: Python compares two times of one zone by the wall
    clock, which shows an hour twice in autumn.
    """
    wrapper: Any = connections[alias].copy()
    wrapper.settings_dict["TIME_ZONE"] = None
    options = wrapper.settings_dict["OPTIONS"]
    for theirs in ("pool", "isolation_level"):
        options.pop(theirs, None)
    wrapper.settings_dict["OPTIONS"] = {"connect_timeout": _connect_timeout(patience), **KEEPALIVE, **options}
    wrapper.isolation_level = psycopg.IsolationLevel.READ_COMMITTED

    def get_new_connection(parameters: dict[str, Any]) -> OwnConnection:
        connection = OwnConnection.connect(**parameters)
        connection.patience = patience.total_seconds()
        connection.isolation_level = wrapper.isolation_level
        connection.autocommit = True
        _change_limits(connection)
        connection.autocommit = False
        return connection

    wrapper.get_new_connection = get_new_connection
    connections[alias] = wrapper


def is_refusal(connection: psycopg.Connection[Any], error: Exception) -> bool:
    """Is it about the values that were to be stored? Those that JSON cannot express raise Python's own errors."""
    if isinstance(error, psycopg.Error):
        refused = (error.sqlstate or "").startswith(REFUSAL_CLASSES)
        return refused and not connection.closed and not lacks_partition(error)
    return isinstance(error, TypeError | ValueError | OverflowError | RecursionError)


def lacks_partition(error: BaseException | None) -> bool:
    """Did a write to the history find no partition for its day?"""
    return isinstance(error, errors.CheckViolation) and not error.diag.constraint_name


def repair(connection: psycopg.Connection[Any], error: psycopg.Error) -> bool:
    """Make the connection fit for the next call. False: it must be replaced."""
    if connection.closed or connection.broken or not (error.sqlstate or "").startswith(HARMLESS_CLASSES):
        return False
    try:
        connection.rollback()
        if lacks_partition(error):
            _add_partition(connection)
    except psycopg.Error:
        logger.exception("The connection could not be repaired and is replaced.")
        return False
    return connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def _add_partition(connection: psycopg.Connection[Any]) -> None:
    """The history has no partition for now. Where this role may not make one, say exactly what an owner must run."""
    ((now,),) = connection.execute("SELECT statement_timestamp()").fetchall()
    today = now.astimezone(UTC).date()
    days = [today + timedelta(days=n) for n in (-1, 0, 1)]
    try:
        with connection.transaction():
            added = add_partitions(connection.cursor(), days)
        logger.warning("The job history had no partition for today; %d were made.", added)
    except errors.InsufficientPrivilege:
        statements = ";\n".join(s for day in days for s in partition_statements("<schema>", day))
        logger.critical(
            "The job history has no partition for today and this role may not make one. Finished jobs stay leased "
            "until the owner of the table runs:\n%s;",
            statements,
        )
