-- Wake one sleeper of a queue. Sent after the commit, on its own: a NOTIFY inside the business transaction would serialise
-- every commit of the cluster.
-- Race:  two callers may pick the same sleeper. It claims what there is, and wakes the next one if its claim came back full.
SELECT pg_notify('django_jobs_' || sleeper.pid, '')
  FROM (SELECT pid FROM pg_locks
         WHERE locktype = 'advisory' AND objsubid = 2 AND mode = 'ShareLock' AND granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND classid = '{jobs}'::regclass AND objid = hashtext(%(queue)s)::oid
         ORDER BY random() LIMIT 1) sleeper
