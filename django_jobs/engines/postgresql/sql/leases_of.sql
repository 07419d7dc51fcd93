-- The leases of one process, which is known to be gone. The rows stay locked until they are settled, in the same transaction.
-- In:    worker, limit. Out: as of expired.sql.
-- Index: django_jobs_job_lease, read whole; it holds what runs now.
-- Race:  SKIP LOCKED: the last statement of the process may still be committing. The caller comes back.
SELECT id, lease_token, queue, type, attempts, max_attempts, locked_by, statement_timestamp()
  FROM {jobs}
 WHERE status = 'processing' AND locked_by = %(worker)s
 ORDER BY locked_until LIMIT %(limit)s FOR UPDATE SKIP LOCKED
