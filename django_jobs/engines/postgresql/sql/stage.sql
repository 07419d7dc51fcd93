-- Move due jobs of one queue and priority to pending, at most limit: a million due at once must not hold an urgent one.
-- Index: django_jobs_job_due.
-- Order: rows of one transaction share ready_xid, so run_at can be their order among themselves. A sequence could not: the scan
--        by ctid meets them as they lie in the table.
UPDATE {jobs}
   SET status = 'pending', ready_xid = pg_current_xact_id()::text::bigint, ready_seq = (extract(epoch FROM run_at) * 1000000)::bigint
 WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {jobs}
     WHERE status = 'scheduled' AND queue = %(queue)s AND priority = %(priority)s AND run_at <= statement_timestamp()
     ORDER BY run_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
