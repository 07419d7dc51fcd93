-- Who holds the lock of a job's row?
-- Out:   pid, seconds its transaction is open, its statement; no row when several sessions share the lock, or it is gone by now.
SELECT a.pid, extract(epoch FROM statement_timestamp() - a.xact_start)::int, left(a.query, 200)
  FROM {jobs} j
  JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = j.xmax
  JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE j.id = %(id)s
