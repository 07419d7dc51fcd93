-- Is anything left for a draining worker of these queues? Paused queues do not count.
-- In:    queues, horizon (interval): scheduled jobs due within it count.
-- Index: each look is ordered as its index is and ends at the first row. A plain EXISTS reads the whole table for a queue that
--        is empty, where the planner expects to meet one of its jobs soon.
SELECT EXISTS (
    SELECT FROM unnest(%(queues)s::text[]) q(name)
     WHERE NOT EXISTS (SELECT FROM {queues} p WHERE p.name = q.name AND p.paused_at IS NOT NULL
                          AND (p.resume_at IS NULL OR p.resume_at > statement_timestamp()))
       AND coalesce(
           (SELECT true FROM {jobs} WHERE queue = q.name AND status = 'pending' AND lost_runs = 0
             ORDER BY priority DESC, ready_xid, ready_seq LIMIT 1),
           (SELECT true FROM {jobs} WHERE queue = q.name AND status = 'pending' AND lost_runs > 0
             ORDER BY priority DESC, ready_xid, ready_seq LIMIT 1),
           (SELECT true FROM {jobs} WHERE queue = q.name AND status = 'scheduled'
                                      AND run_at <= statement_timestamp() + %(horizon)s::interval
             ORDER BY priority DESC, run_at LIMIT 1),
           false))
    OR EXISTS (SELECT FROM {jobs} j WHERE j.status = 'processing' AND j.queue = ANY (%(queues)s))
