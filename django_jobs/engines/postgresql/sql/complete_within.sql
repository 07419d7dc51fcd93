-- Complete a run on the handler's own connection, as the last statement before its COMMIT (atomic=True).
-- Out:   one row; none when the lease is lost. One row, so it may wait: a cancellation or a renewal in flight ends soon.
WITH gone AS (
    DELETE FROM {jobs} WHERE id = %(id)s AND lease_token = %(token)s RETURNING *
)
INSERT INTO {job_history} (id, job_id, type, queue, tenant, status, attempts, enqueued_at, started_at, finished_at,
                           duration_ms, worker, result, metrics, errors)
SELECT %(history_id)s, id, type, queue, tenant, 'succeeded', attempts, created_at,
       statement_timestamp() - make_interval(secs => %(duration_ms)s / 1000.0), statement_timestamp(),
       %(duration_ms)s, locked_by, %(result)s, %(metrics)s, errors
  FROM gone
RETURNING job_id
