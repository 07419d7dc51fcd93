-- Enqueue one job on the caller's connection, in the caller's transaction.
-- In:    the columns; run_at (timestamptz or null = now) and delay (interval) add up to when it may run.
-- Out:   one row: status, asleep (true when a worker of the queue sleeps and must be woken after the commit).
-- Race:  the probe runs after the row has its place, so the transaction has its id by then. A sleeper takes its lock before
--        it takes its own id and its snapshot (see worker/wake.py): whoever misses the lock here is seen there.
INSERT INTO {jobs} AS j
       (id, queue, type, payload, priority, tenant, max_attempts, context, run_at, status)
VALUES (%(id)s, %(queue)s, %(type)s, %(payload)s, %(priority)s, %(tenant)s, %(max_attempts)s, %(context)s,
        coalesce(%(run_at)s, statement_timestamp()) + %(delay)s::interval,
        CASE WHEN coalesce(%(run_at)s, statement_timestamp()) + %(delay)s::interval <= statement_timestamp()
             THEN 'pending' ELSE 'scheduled' END)
RETURNING status, {asleep}
