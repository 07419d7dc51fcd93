"""The PostgreSQL server: what keeps it from cleaning up, and a missing partition. Elsewhere nothing is found.

What this role may not see is not found either: other roles' sessions are shown to members of ``pg_read_all_stats``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django_jobs.models import Job, Severity
from django_jobs.models.partitions import missing_partitions, partition_statements

from .finding import Finding, View, in_words

DAYS_NEEDED = 3
OLD_XMIN = 5_000_000

# Only what can hold back vacuum here: sessions of this database, its prepared transactions, replication.
HOLDERS = """
SELECT 'pid ' || pid, coalesce(usename, '?') || ' (' || coalesce(application_name, '') || '), ' || coalesce(state, '?'),
       statement_timestamp() - xact_start
  FROM pg_stat_activity
 WHERE xact_start < statement_timestamp() - %(limit)s::interval AND pid <> pg_backend_pid()
   AND (datname = current_database() AND backend_type = 'client backend' OR backend_type = 'walsender')
UNION ALL
SELECT 'prepared ' || gid, owner, statement_timestamp() - prepared
  FROM pg_prepared_xacts
 WHERE database = current_database() AND prepared < statement_timestamp() - %(limit)s::interval
 ORDER BY 3 DESC LIMIT 20
"""
SLOTS = """
SELECT slot_name, active, age(xmin) FROM pg_replication_slots
 WHERE xmin IS NOT NULL AND age(xmin) > %(age)s ORDER BY 3 DESC LIMIT 20
"""
DEAD = "SELECT n_dead_tup, last_autovacuum FROM pg_stat_user_tables WHERE relid = to_regclass(%(table)s)"


def old_transaction(view: View) -> Iterator[Finding]:
    """A transaction, prepared transaction or replication slot keeps dead rows from being vacuumed."""
    limit = view.settings.alert_old_transaction
    for subject, who, age in _rows(view, HOLDERS, limit=limit):
        yield Finding(
            subject=subject,
            severity=Severity.WARNING,
            summary=f"A transaction has been open for {in_words(age)}, by {who}. Dead rows stay meanwhile.",
            details={"age_seconds": int(age.total_seconds())},
        )
    for slot, active, age in _rows(view, SLOTS, age=OLD_XMIN):
        yield Finding(
            subject=f"slot {slot}",
            severity=Severity.WARNING,
            summary=f"Replication slot {slot} ({'active' if active else 'not in use'}) holds {age:,} transactions "
            "back. Dead rows stay meanwhile.",
        )


def dead_tuples(view: View) -> Iterator[Finding]:
    """The jobs table holds more dead rows than ALERT_DEAD_TUPLES."""
    for number, vacuumed_at in _rows(view, DEAD, table=Job._meta.db_table):
        if number >= view.settings.alert_dead_tuples:
            yield Finding(
                subject=Job._meta.db_table,
                severity=Severity.WARNING,
                summary=f"The jobs table holds {number:,} dead rows; claims slow down.",
                details={"last_autovacuum": vacuumed_at.isoformat() if vacuumed_at else None},
            )


def missing_partition(view: View) -> Iterator[Finding]:
    """The history has no partition for today or one of the next two days."""
    if view.connection.vendor != "postgresql":
        return
    today = view.now.date()
    with view.connection.cursor() as cursor:
        schema, missing = missing_partitions(cursor, [today + timedelta(days=n) for n in range(DAYS_NEEDED)])
    for day in missing:
        urgent = day <= today + timedelta(days=1)
        yield Finding(
            subject=f"day {day}",
            severity=Severity.CRITICAL if urgent else Severity.ERROR,
            summary=f"The job history has no partition for {day}. What ends on that day stays leased until it is made.",
            details={"sql": ";\n".join(partition_statements(schema, day)) + ";"},
        )


def _rows(view: View, query: str, **terms: Any) -> list[Any]:
    if view.connection.vendor != "postgresql":
        return []
    with view.connection.cursor() as cursor:
        cursor.execute(query, terms)
        return list(cursor.fetchall())
