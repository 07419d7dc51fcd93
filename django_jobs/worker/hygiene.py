"""Django's database connections around a run: nothing stale before it, nothing left open after it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper


def tidy_connections() -> None:
    """Close what is unusable or past CONN_MAX_AGE, and give pooled connections back. For the thread that calls."""
    for connection in connections.all(initialized_only=True):
        _tidy(connection)


def _tidy(connection: BaseDatabaseWrapper) -> None:
    if connection.settings_dict["OPTIONS"].get("pool") or _was_closed(connection):
        connection.close()
    else:
        connection.close_if_unusable_or_obsolete()


def close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        connection.close()


def clean_up() -> str:
    """After a run: what its handler left behind on this thread's connections, in words; empty if nothing.

    A connection with an open transaction is thrown away: what was written on it is rolled back by the server. The
    others are tidied.
    """
    found = []
    for connection in connections.all(initialized_only=True):
        if left := _left_open(connection):
            found.append(f"{left} on {connection.alias!r}")
            _discard(connection)
        else:
            _tidy(connection)
    return " and ".join(found)


def clean_up_and_close() -> str:
    """As ``clean_up``, in a thread that serves no other run."""
    left = clean_up()
    close_connections()
    return left


def _left_open(connection: BaseDatabaseWrapper) -> str:
    if connection.in_atomic_block:
        return "an atomic block that was entered but not left"
    if connection.connection is None or _was_closed(connection):
        return ""
    if connection.get_autocommit() != connection.settings_dict["AUTOCOMMIT"]:
        return "a transaction begun by set_autocommit(False)"
    if _is_in_transaction(connection):
        return "an open transaction"
    return ""


def _is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Asked of the driver, because Django does not see a BEGIN in a cursor. Of other drivers nothing is known here."""
    driver: Any = connection.connection
    if connection.vendor == "sqlite":
        return bool(driver.in_transaction)
    if connection.vendor == "postgresql":
        return bool(driver.info.transaction_status)
    return False


def _was_closed(connection: Any) -> bool:
    """By the handler, on the driver: Django does not know, and would give it to the next run."""
    driver = connection.connection
    if driver is None:
        return False
    if connection.vendor == "postgresql":
        return bool(driver.closed)
    if connection.vendor == "sqlite":
        try:
            driver.in_transaction  # noqa: B018 - it raises where there is no connection any more
        except connection.Database.ProgrammingError:
            return True
    return False


def _discard(connection: BaseDatabaseWrapper) -> None:
    with suppress(Error):
        connection.close()
    del connections[connection.alias]
