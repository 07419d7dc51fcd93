-- Wake one sleeper of a queue, found by the lock it holds, on the channel of its session.
-- Sent after the commit, on its own: a NOTIFY inside the business transaction would serialise every commit of the cluster.
-- Plan:  a function, as enqueue.sql.
SELECT django_jobs_wake(%(queue)s)
