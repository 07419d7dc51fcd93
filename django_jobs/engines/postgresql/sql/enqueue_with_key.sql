-- Enqueue one job unless its key is taken, on the caller's connection, in the caller's transaction.
-- In:    as enqueue.sql, and key, payload_hash, retention (interval).
-- Out:   as enqueue.sql; no row when the key is taken. A key that another open transaction holds is waited for, by its
--        primary key: if that one rolls back we insert, if it commits we get no row and read_key.sql finds the winner.
WITH claimed AS (
    INSERT INTO {idempotency_keys} (queue, key, job_id, payload_hash, expires_at)
    VALUES (%(queue)s, %(key)s, %(id)s, %(payload_hash)s,
            greatest(statement_timestamp(), coalesce(%(run_at)s, statement_timestamp()) + %(delay)s::interval) + %(retention)s)
    ON CONFLICT (queue, key) DO NOTHING
    RETURNING job_id
)
INSERT INTO {jobs} AS j
       (id, queue, type, payload, priority, tenant, max_attempts, context, idempotency_key, run_at, status)
SELECT job_id, %(queue)s, %(type)s, %(payload)s, %(priority)s, %(tenant)s, %(max_attempts)s, %(context)s, %(key)s,
       coalesce(%(run_at)s, statement_timestamp()) + %(delay)s::interval,
       CASE WHEN coalesce(%(run_at)s, statement_timestamp()) + %(delay)s::interval <= statement_timestamp()
            THEN 'pending' ELSE 'scheduled' END
  FROM claimed
RETURNING status, {asleep}
