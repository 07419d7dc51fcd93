"""Day partitions of the history table. No default partition: adding a day would have to scan it.

``add_partitions`` may run in any number of processes at once, beside writers. A new leaf is made alone and
then attached, which lets reads and writes of the parent go on; a parent that is locked is given up on after
two seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from django_jobs.ids import uuid7_range

TABLE = "django_jobs_job_history"

# An append-only leaf: vacuumed and frozen soon after its day, not all at once months later.
STORAGE = "autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_freeze_min_age = 0"

_LEAVES = """
SELECT n.nspname, coalesce(array_agg(leaf.relname) FILTER (WHERE leaf.oid IS NOT NULL), '{}')
  FROM pg_class parent
  JOIN pg_namespace n ON n.oid = parent.relnamespace
  LEFT JOIN pg_inherits i ON i.inhparent = parent.oid
  LEFT JOIN pg_class leaf ON leaf.oid = i.inhrelid
 WHERE parent.oid = to_regclass(%s)
 GROUP BY n.nspname
"""


def add_partitions(cursor: Any, days: Iterable[date]) -> int:
    """Make the missing ones of these days' partitions, beside their parent. Returns how many are new.

    ``cursor``: Django's or psycopg's, in a transaction of its own.
    """
    days = list(days)
    if not missing_partitions(cursor, days)[1]:
        return 0
    cursor.execute("SELECT current_setting('lock_timeout')")
    before = cursor.fetchone()[0]
    cursor.execute("SET LOCAL lock_timeout = '2s'")
    cursor.execute("SELECT pg_advisory_xact_lock(hashtext('django_jobs partitions'))")
    schema, missing = missing_partitions(cursor, days)
    for day in missing:
        for statement in partition_statements(schema, day):
            cursor.execute(statement)
    cursor.execute("SELECT set_config('lock_timeout', %s, true)", [before])
    return len(missing)


def partition_statements(schema: str, day: date) -> list[str]:
    """The SQL that makes and attaches one day's partition."""
    parent = f'"{schema}"."{TABLE}"'
    leaf = f'"{schema}"."{leaf_name(day)}"'
    low, high = uuid7_range(day)
    return [
        f"CREATE TABLE {leaf} (LIKE {parent} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH ({STORAGE})",
        f"ALTER TABLE {parent} ATTACH PARTITION {leaf} FOR VALUES FROM ('{low}') TO ('{high}')",
    ]


def leaf_name(day: date) -> str:
    return f"{TABLE}_{day:%Y%m%d}"


def missing_partitions(cursor: Any, days: Iterable[date]) -> tuple[str, list[date]]:
    """The history's schema, and those of these days that have no partition."""
    cursor.execute(_LEAVES, [TABLE])
    schema, leaves = cursor.fetchone()
    return schema, [day for day in days if leaf_name(day) not in leaves]
