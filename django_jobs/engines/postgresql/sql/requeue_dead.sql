-- Give dead jobs fresh attempts, same id: one statement, so a job is always in exactly one table.
-- Out:   id, queue of each job moved; ids that are not dead, or that another operator is moving, do not come back.
WITH gone AS (
    DELETE FROM {dead_jobs}
     WHERE id = ANY (ARRAY(SELECT id FROM {dead_jobs} WHERE id = ANY (%(ids)s) FOR UPDATE SKIP LOCKED))
    RETURNING *
)
INSERT INTO {jobs} (id, queue, type, payload, priority, tenant, created_at, max_attempts, idempotency_key, last_error, errors,
                    context, run_at, status)
SELECT id, queue, type, payload, priority, tenant, created_at, max_attempts, idempotency_key, last_error, errors, context,
       statement_timestamp() + %(delay)s::interval,
       CASE WHEN %(delay)s::interval <= interval '0' THEN 'pending' ELSE 'scheduled' END
  FROM gone
RETURNING id, queue
