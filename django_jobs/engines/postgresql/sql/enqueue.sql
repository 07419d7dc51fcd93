-- Enqueue one job on the caller's connection, in the caller's transaction.
-- In:    id, queue, type, payload, priority, tenant, max_attempts, context, run_at (null: now), delay (added to it).
-- Out:   0 scheduled; 1 pending; 2 pending, and a worker of the queue sleeps and must be woken after the commit.
-- Plan:  a function, because its plan is kept for the session, also behind a transaction pooler, where prepared statements
--        are not safe: 45 µs of the server's time instead of 94 (see docs/decisions/enqueue-function.md).
SELECT django_jobs_enqueue(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
