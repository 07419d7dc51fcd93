-- What there is to do, in one row: time until the next scheduled job and the next look at a schedule, whether a lease ran
-- out, the queues with ready jobs although somebody is asleep, whether a bulk operation runs, and whether changes of dead
-- groups are to be added up.
-- Index: django_jobs_job_due (see _HOP); django_jobs_job_claim by hopping, one descent a queue; django_jobs_job_lease;
--        django_jobs_schedule_look; django_jobs_bulk_running. While nobody sleeps the claim index is not touched: its head
--        may be full of dead rows.
WITH RECURSIVE {hop}, ready AS (
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
