"""Day partitions of the history that are over: frozen soon after their day, dropped when they are too old.

Nothing here makes a writer wait. DETACH CONCURRENTLY waits for whoever has used the parent, without a lock that
others would queue up behind, and gives up after two seconds; the detaching is then pending, and finished another time.
Changing a leaf's storage parameters blocks neither reads nor writes.

Behind a transaction pooler such a limit cannot be set: it would stay with a connection that others use next. There the
detaching is done in a transaction, with a lock on the parent that is given up on after a fifth of a second.

A table is dropped only if it is a partition, or bears the mark that was put on it before it was detached: what an
operator detached to keep it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from .partitions import TABLE, leaf_name

MARK = "django_jobs: too old, to be dropped"

# One pass of autovacuum over what came in since the last one, at its own pace; nothing comes in any more.
FROZEN = "autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 0"

_LEAVES = """
SELECT n.nspname, leaf.relname, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false),
       coalesce(leaf.reloptions, '{}') @> '{autovacuum_vacuum_insert_threshold=0}'
  FROM pg_class parent
  JOIN pg_namespace n ON n.oid = parent.relnamespace
  JOIN pg_class leaf ON leaf.relnamespace = n.oid AND leaf.relkind = 'r' AND leaf.relname ~ %(pattern)s
  LEFT JOIN pg_inherits i ON i.inhparent = parent.oid AND i.inhrelid = leaf.oid
 WHERE parent.oid = to_regclass(%(table)s)
   AND (i.inhrelid IS NOT NULL OR obj_description(leaf.oid, 'pg_class') = %(mark)s)
 ORDER BY i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false) DESC, leaf.relname
"""


@dataclass(frozen=True, slots=True)
class _Leaf:
    schema: str
    name: str
    attached: bool
    pending: bool
    frozen: bool


def drop_oldest(cursor: Any, before: date) -> str:
    """Drop one partition of a day before this one. Returns its name, empty if there is none.

    ``cursor``: Django's, in autocommit mode, since no transaction can detach concurrently.
    """
    for leaf in _before(cursor, before):
        table = f'"{leaf.schema}"."{leaf.name}"'
        if leaf.attached:
            with _impatient(cursor):
                cursor.execute(f"COMMENT ON TABLE {table} IS '{MARK}'")
            _detach(cursor, f'ALTER TABLE "{leaf.schema}"."{TABLE}" DETACH PARTITION {table}', pending=leaf.pending)
        with _impatient(cursor):
            cursor.execute(f"DROP TABLE {table}")
        return leaf.name
    return ""


def _detach(cursor: Any, statement: str, *, pending: bool) -> None:
    cursor.execute("SELECT pg_backend_pid()")
    if cursor.fetchone()[0] != cursor.connection.info.backend_pid:
        with _impatient(cursor, "200ms"):
            cursor.execute(f"{statement} FINALIZE" if pending else statement)
        return
    cursor.execute("SET lock_timeout = '2s'")
    try:
        cursor.execute(f"{statement} {'FINALIZE' if pending else 'CONCURRENTLY'}")
    finally:
        cursor.execute("RESET lock_timeout")


def freeze_closed(cursor: Any, before: date) -> int:
    """Have the partitions of the days before this one vacuumed and frozen once. Returns how many were not yet told."""
    told = 0
    for leaf in _before(cursor, before):
        if leaf.attached and not leaf.pending and not leaf.frozen:
            with _impatient(cursor):
                cursor.execute(f'ALTER TABLE "{leaf.schema}"."{leaf.name}" SET ({FROZEN})')
            told += 1
    return told


def _before(cursor: Any, day: date) -> list[_Leaf]:
    """What an earlier turn left behind comes first, then from the oldest on."""
    cursor.execute(_LEAVES, {"table": TABLE, "pattern": f"^{TABLE}_[0-9]{{8}}$", "mark": MARK})
    leaves = [_Leaf(*row) for row in cursor.fetchall()]
    return [leaf for leaf in leaves if leaf.name < leaf_name(day)]


@contextmanager
def _impatient(cursor: Any, limit: str = "2s") -> Iterator[None]:
    """A transaction that waits for no lock longer than this."""
    with cursor.connection.transaction():
        cursor.execute(f"SET LOCAL lock_timeout = '{limit}'")
        yield
