"""Loads ``sql/*.sql`` once, with the tables' names from the models put in.

Names stay as the models give them: unqualified ones are found by the connection's search_path, exactly as
Django finds them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from django_jobs import models

LEASE_TOKENS = "django_jobs_lease_token_seq"

# True when somebody sleeps. The lock's two ints: the jobs table, so that two installations in one database do not
# wake each other, and the queue.
_ASLEEP = (
    "CASE WHEN j.status <> 'pending' THEN false "
    "WHEN pg_try_advisory_lock(j.tableoid::int4, hashtext(j.queue)) "
    "THEN NOT pg_advisory_unlock(j.tableoid::int4, hashtext(j.queue)) ELSE true END"
)

# Is the queue q.name not paused? A scalar sub-select, so that the planner keeps the order of the queues.
_RUNS = (
    "NOT coalesce((SELECT p.paused_at IS NOT NULL AND (p.resume_at IS NULL OR p.resume_at > statement_timestamp()) "
    "FROM {queues} p WHERE p.name = q.name), false)"
)

# Does anybody sleep? Their locks are those of lie_down.sql.
_SLEEPERS = (
    "SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.mode = 'ShareLock' AND l.granted "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND l.classid = '{jobs}'::regclass"
)

# The common table expression ``hop``: every queue and priority with scheduled jobs, each with its earliest run_at. By
# hopping along the index django_jobs_job_due: one descent each, however many jobs it holds.
_HOP = """hop AS (
    (SELECT queue, priority, run_at FROM {jobs}
      WHERE status = 'scheduled' ORDER BY queue, priority DESC, run_at LIMIT 1)
    UNION ALL
    SELECT next.* FROM hop CROSS JOIN LATERAL (
        (SELECT j.queue, j.priority, j.run_at FROM {jobs} j
          WHERE j.status = 'scheduled' AND j.queue = hop.queue AND j.priority < hop.priority
          ORDER BY j.queue, j.priority DESC, j.run_at LIMIT 1)
        UNION ALL
        (SELECT j.queue, j.priority, j.run_at FROM {jobs} j
          WHERE j.status = 'scheduled' AND j.queue > hop.queue
          ORDER BY j.queue, j.priority DESC, j.run_at LIMIT 1)
        LIMIT 1) next
)"""

# Keeps the first 2 and the last 8.
_ERRORS_WITH_NEW = (
    "CASE WHEN v.new_error IS NULL THEN j.errors "
    "WHEN jsonb_array_length(j.errors) >= 10 THEN (j.errors - 2) || v.new_error ELSE j.errors || v.new_error END"
)


@cache
def _names() -> dict[str, str]:
    tables = {
        "jobs": models.Job,
        "dead_jobs": models.DeadJob,
        "dead_groups": models.DeadGroup,
        "dead_group_changes": models.DeadGroupChange,
        "dead_group_hours": models.DeadGroupHour,
        "job_history": models.JobHistory,
        "idempotency_keys": models.IdempotencyKey,
        "queues": models.Queue,
        "schedules": models.Schedule,
        "leadership": models.Leadership,
        "bulk_operations": models.BulkOperation,
    }
    return {
        "asleep": _ASLEEP,
        "runs": _RUNS,
        "sleepers": _SLEEPERS,
        "hop": _HOP,
        "errors_with_new": _ERRORS_WITH_NEW,
        "lease_tokens": LEASE_TOKENS,
    } | {name: _quoted(model._meta.db_table) for name, model in tables.items()}


def _quoted(table: str) -> str:
    return table if table.startswith('"') else f'"{table}"'


@cache
def query(name: str) -> str:
    """The text of ``sql/<name>.sql`` without its comment, placeholders as psycopg's ``%(name)s``."""
    text = (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    body = "\n".join(lines)
    for placeholder, value in _names().items():
        body = body.replace("{" + placeholder + "}", value)
    return body
