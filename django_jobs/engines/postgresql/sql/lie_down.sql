-- Be seen as a sleeper of these queues, by locks that end with the session. False when an enqueuer's probe holds one right now.
SELECT bool_and(pg_try_advisory_lock_shared('{jobs}'::regclass::oid::int4, hashtext(name)))
  FROM unnest(%(queues)s::text[]) AS q(name)
