"""Promise P1: a job and the data it belongs to commit together, or enqueueing is refused."""

from __future__ import annotations

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.conf import get_settings
from django_jobs.engines import statements
from django_jobs.exceptions import SeparateTransactions
from django_jobs.logs import get_logger

logger = get_logger("django_jobs")


def jobs_connection() -> BaseDatabaseWrapper:
    """This thread's Django connection to the jobs alias."""
    return connections[get_settings().database]


def enqueueing_connection() -> BaseDatabaseWrapper:
    """The jobs connection, after making sure that no other alias has a transaction the job could not join.

    A block that a TestCase opened counts on neither side, so that a test sees the refusal production would see.
    """
    connection = jobs_connection()
    if not _in_own_transaction(connection):
        for other in connections.all(initialized_only=True):
            if other.alias != connection.alias and _in_own_transaction(other) and _matters(other):
                raise SeparateTransactions(
                    f"A transaction is open on {other.alias!r} but not on {connection.alias!r}, where jobs are kept: "
                    f"the job would be there even if {other.alias!r} rolled back. Open transaction.atomic("
                    f"using={connection.alias!r}) around the call, enqueue after the commit (transaction.on_commit(…, "
                    f"using={other.alias!r})), or list {other.alias!r} in DJANGO_JOBS['HARMLESS_ALIASES']."
                )
    return connection


def _matters(connection: BaseDatabaseWrapper) -> bool:
    return connection.alias not in get_settings().harmless_aliases


def _in_own_transaction(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block:
        return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)
    return connection.connection is not None and not connection.get_autocommit()


class Wake:
    """Wakes one sleeping worker of a queue; put behind the commit, once for each queue. Never raises."""

    __slots__ = ("alias", "queue")

    def __init__(self, alias: str, queue: str) -> None:
        self.alias, self.queue = alias, queue

    def __call__(self) -> None:
        # Caught here, because what Django does about a failed robust hook needs a function's __qualname__.
        try:
            statements(self.alias).wake(connections[self.alias], self.queue)
        except Exception:
            logger.exception("No worker of queue %r could be woken; one will look for itself.", self.queue)


def wake_after_commit(connection: BaseDatabaseWrapper, queue: str) -> None:
    """Call when jobs of the queue became ready and somebody may be asleep.

    In a transaction that Django does not manage the NOTIFY rides inside: it is sent by the commit.
    """
    if not connection.in_atomic_block and not connection.get_autocommit():
        statements(connection.alias).wake(connection, queue)
    elif not _already_planned(connection, queue):
        transaction.on_commit(Wake(connection.alias, queue), using=connection.alias, robust=True)


def _already_planned(connection: BaseDatabaseWrapper, queue: str) -> bool:
    """Is a wake-up of this queue planned?

    Any one will do: a savepoint whose rollback would take it away is still open, so the present call is inside it too.
    """
    return any(isinstance(hook, Wake) and hook.queue == queue for _, hook, *_ in connection.run_on_commit)
