-- The queue and priority of every group of scheduled jobs, with its earliest run_at.
-- Index: django_jobs_job_due, by hopping from group to group: one descent a group, however many jobs it holds.
WITH RECURSIVE hop AS (
    (SELECT queue, priority, run_at FROM {jobs} WHERE status = 'scheduled' ORDER BY queue, priority DESC, run_at LIMIT 1)
    UNION ALL
    SELECT next.* FROM hop CROSS JOIN LATERAL (
        (SELECT j.queue, j.priority, j.run_at FROM {jobs} j
          WHERE j.status = 'scheduled' AND j.queue = hop.queue AND j.priority < hop.priority
          ORDER BY j.queue, j.priority DESC, j.run_at LIMIT 1)
        UNION ALL
        (SELECT j.queue, j.priority, j.run_at FROM {jobs} j
          WHERE j.status = 'scheduled' AND j.queue > hop.queue
          ORDER BY j.queue, j.priority DESC, j.run_at LIMIT 1)
        LIMIT 1) next
)
SELECT queue, priority, extract(epoch FROM run_at - statement_timestamp())::double precision FROM hop ORDER BY priority DESC
