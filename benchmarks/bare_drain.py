"""The least that running jobs costs in this database: claim 200, settle them with a history row, and again.

One psycopg connection, prepared statements, each in a transaction of its own. No Django, no handlers, no
retries; the tables and the order of jobs are those of django_jobs.
"""

import os

import psycopg

from django_jobs.clock import milliseconds
from django_jobs.ids import uuid7_hex

BATCH = 200
NAME = "bare script"
CLAIM = """
UPDATE django_jobs_job
   SET status = 'processing', attempts = attempts + 1, locked_by = %(name)s,
       locked_until = statement_timestamp() + interval '60 s', lease_token = nextval('django_jobs_lease_token_seq')
 WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM django_jobs_job
     WHERE queue = 'default' AND status = 'pending' AND lost_runs = 0
     ORDER BY priority DESC, ready_xid, ready_seq LIMIT %(batch)s FOR UPDATE SKIP LOCKED))
RETURNING id, lease_token, type, payload::text, attempts
"""
SETTLE = """
WITH gone AS (
    DELETE FROM django_jobs_job
     WHERE id = ANY (%(ids)s) AND locked_by = %(name)s AND lease_token = ANY (%(tokens)s)
    RETURNING *
)
INSERT INTO django_jobs_job_history (id, job_id, type, queue, tenant, status, attempts, enqueued_at, started_at,
                                     finished_at, duration_ms, worker, errors)
SELECT v.history_id, gone.id, type, queue, tenant, 'succeeded', attempts, created_at, statement_timestamp(),
       statement_timestamp(), 0, locked_by, errors
  FROM gone JOIN unnest(%(ids)s, %(history_ids)s::uuid[]) AS v(id, history_id) ON v.id = gone.id
RETURNING job_id
"""


def main() -> None:
    with psycopg.connect(os.environ["BENCHMARK_POSTGRESQL"], autocommit=True) as connection:
        while rows := connection.execute(CLAIM, {"name": NAME, "batch": BATCH}, prepare=True).fetchall():
            now = milliseconds()
            terms = {
                "name": NAME,
                "ids": [row[0] for row in rows],
                "tokens": [row[1] for row in rows],
                "history_ids": [uuid7_hex(now) for _ in rows],
            }
            settled = connection.execute(SETTLE, terms, prepare=True).fetchall()
            if len(settled) != len(rows):
                raise RuntimeError(f"{len(settled)} of {len(rows)} jobs were settled.")


if __name__ == "__main__":
    main()
