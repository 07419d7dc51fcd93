"""The session's own connection: Django's settings, but IMMEDIATE transactions and a short wait for the lock.

It stands in for the thread's ``connections[alias]`` while a call of the session lasts, so that the models use
it, and no longer: what else runs in the thread keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import clear_frames
from typing import Any

from django.db import Error, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError

REFUSALS = (Error, TypeError, ValueError, OverflowError, RecursionError)

# A call that waits longer for another writer gives up, and is made again.
LOCK_TIMEOUT = 2.0


def connect(alias: str) -> BaseDatabaseWrapper:
    connection = connections[alias].copy()
    options: dict[str, Any] = connection.settings_dict["OPTIONS"]
    options["transaction_mode"] = "IMMEDIATE"
    options["timeout"] = min(options.get("timeout", LOCK_TIMEOUT), LOCK_TIMEOUT)
    return connection


@contextmanager
def standing_in(connection: BaseDatabaseWrapper) -> Iterator[None]:
    alias = connection.alias
    usual = connections[alias]
    if usual.in_atomic_block:
        raise TransactionManagementError(
            f"A jobs session has a connection of its own and cannot be used inside atomic() on {alias!r}: "
            "it would wait for that transaction. In a test, use TransactionTestCase."
        )
    connections[alias] = connection
    try:
        yield
    finally:
        connections[alias] = usual


def commits_of_others(connection: BaseDatabaseWrapper) -> int:
    """A number that changes with each commit on any other connection, of this or another process."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA data_version")
        ((version,),) = cursor.fetchall()
    return int(version)


def release_cursors(error: BaseException) -> None:
    """Let go of the cursors that the error's frames hold. To be called in the thread where it was raised.

    Django does not close the cursor of a BEGIN that failed, and leaves it in a cycle with its error. The garbage
    collector would reset it in whatever thread it happens to run, perhaps in the one that holds the write lock,
    and each reset waits until this connection has done waiting for that lock.
    """
    raised: BaseException | None = error
    while raised is not None:
        clear_frames(raised.__traceback__)
        raised = raised.__cause__


def is_locked(error: BaseException) -> bool:
    """Did another writer hold the database for longer than the timeout?"""
    return getattr(error.__cause__, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def will_pass(error: BaseException) -> bool:
    """Would the same request succeed at another time? Locked, out of space, not to be opened."""
    return isinstance(error, OperationalError | InterfaceError)


def is_refusal(error: BaseException) -> bool:
    """Is it about the values to be stored? Those that nobody can adapt raise Python's own errors."""
    return isinstance(error, REFUSALS) and not will_pass(error)
