-- Is anything left for a draining worker of these queues? Paused queues do not count.
-- In:    queues, horizon (interval): scheduled jobs due within it count.
SELECT EXISTS (
    SELECT FROM unnest(%(queues)s::text[]) q(name)
     WHERE NOT EXISTS (SELECT FROM {queues} p WHERE p.name = q.name AND p.paused_at IS NOT NULL
                          AND (p.resume_at IS NULL OR p.resume_at > statement_timestamp()))
       AND (EXISTS (SELECT FROM {jobs} j WHERE j.queue = q.name AND j.status = 'pending' AND j.lost_runs = 0)
         OR EXISTS (SELECT FROM {jobs} j WHERE j.queue = q.name AND j.status = 'pending' AND j.lost_runs > 0)
         OR EXISTS (SELECT FROM {jobs} j WHERE j.queue = q.name AND j.status = 'scheduled'
                       AND j.run_at <= statement_timestamp() + %(horizon)s)))
    OR EXISTS (SELECT FROM {jobs} j WHERE j.status = 'processing' AND j.queue = ANY (%(queues)s))
