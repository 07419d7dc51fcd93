-- Leases that ran out. The rows stay locked until they are settled, in the same transaction, as runs that were lost.
-- In:    limit, grace: nothing is returned while the server has not been up for so long, so that a failover re-runs nothing.
-- Out:   the columns of ExpiredLease, and the server's time.
-- Index: django_jobs_job_lease.
SELECT id, lease_token, queue, type, attempts, max_attempts, locked_by, statement_timestamp()
  FROM {jobs}
 WHERE status = 'processing' AND locked_until < statement_timestamp()
   AND pg_postmaster_start_time() < statement_timestamp() - %(grace)s::interval
 ORDER BY locked_until LIMIT %(limit)s FOR UPDATE SKIP LOCKED
