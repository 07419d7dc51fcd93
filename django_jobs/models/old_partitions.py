"""Day partitions of the history that are over: frozen soon after their day, dropped when they are too old.

Nothing here makes a writer wait. DETACH CONCURRENTLY waits for whoever has used the parent, without a lock that
others would queue up behind, and gives up after two seconds; the detaching is then pending, and finished another time.
Changing a leaf's storage parameters blocks neither reads nor writes.

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
        table, parent = f'"{leaf.schema}"."{leaf.name}"', f'"{leaf.schema}"."{TABLE}"'
        with _impatient(cursor):
            if leaf.attached:
                cursor.execute(f"COMMENT ON TABLE {table} IS '{MARK}'")
                how = "FINALIZE" if leaf.pending else "CONCURRENTLY"
                cursor.execute(f"ALTER TABLE {parent} DETACH PARTITION {table} {how}")
            cursor.execute(f"DROP TABLE {table}")
        return leaf.name
    return ""


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
def _impatient(cursor: Any) -> Iterator[None]:
    """Wait for no lock longer than two seconds."""
    cursor.execute("SET lock_timeout = '2s'")
    try:
        yield
    finally:
        cursor.execute("RESET lock_timeout")
