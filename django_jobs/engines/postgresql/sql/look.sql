-- What there is to do, in one row: time until the next scheduled job and the next look at a schedule, whether a lease ran out,
-- the queues with ready jobs although somebody is asleep, whether a bulk operation runs, and whether changes of dead groups are
-- to be added up.
-- Index: django_jobs_job_due and django_jobs_job_claim by hopping, one descent a group or queue; django_jobs_job_lease;
--        django_jobs_schedule_look; django_jobs_bulk_running. While nobody sleeps the claim index is not touched: its head may be full of dead rows.
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
), ready AS (
    (SELECT queue AS name FROM {jobs} WHERE status = 'pending' AND lost_runs = 0 AND EXISTS ({sleepers}) ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT next.name FROM ready q CROSS JOIN LATERAL (
        SELECT j.queue AS name FROM {jobs} j
         WHERE j.status = 'pending' AND j.lost_runs = 0 AND j.queue > q.name ORDER BY j.queue LIMIT 1) next
)
SELECT (SELECT min(run_at) FROM hop) - statement_timestamp(),
       (SELECT min(look_at) FROM {schedules} WHERE look_at IS NOT NULL) - statement_timestamp(),
       EXISTS (SELECT FROM {jobs} WHERE status = 'processing' AND locked_until < statement_timestamp()),
       ARRAY(SELECT q.name FROM ready q WHERE {runs}),
       EXISTS (SELECT FROM {bulk_operations} WHERE state = 'running'),
       EXISTS (SELECT FROM {dead_group_changes})
