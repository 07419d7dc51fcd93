-- Who holds the lock of a job's row?
-- Out:   pid, user, program, seconds its transaction is open; no row when several sessions share the lock, or it is gone.
--        Not its statement: that may hold personal data, and this goes into a log.
SELECT a.pid, a.usename, a.application_name, extract(epoch FROM statement_timestamp() - a.xact_start)::int
  FROM {jobs} j
  JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = j.xmax
  JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE j.id = %(id)s
