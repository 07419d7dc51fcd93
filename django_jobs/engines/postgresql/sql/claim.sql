-- Lease ready jobs to a process.
-- In:    queues (text[], the one to serve first in front), limit, suspects (0 or 1), worker, lease (interval).
-- Out:   at most limit rows, unordered.
-- Index: django_jobs_job_claim and django_jobs_job_suspect, each read in order until the limit; never a sort.
-- Race:  the ARRAY sub-select runs exactly once. `IN (SELECT … LIMIT n FOR UPDATE SKIP LOCKED)` can be run again for each outer
--        row and then takes more than n. A row changed between snapshot and lock is re-checked by LockRows; if its ctid moved,
--        it is merely not claimed this time.
-- Order: the nested loop is lazy, so a later queue's rows are not even locked once the limit is reached.
--        A suspect goes in front of everything, one at a time: it may kill its process again.
UPDATE {jobs} j
   SET status = 'processing', attempts = j.attempts + 1, locked_by = %(worker)s,
       locked_until = statement_timestamp() + %(lease)s, lease_token = nextval('{lease_tokens}')
 WHERE j.ctid = ANY (ARRAY(
    SELECT c FROM (
        (SELECT suspect.c
           FROM unnest(%(queues)s::text[]) AS q(name)
          CROSS JOIN LATERAL (
                SELECT ctid AS c FROM {jobs}
                 WHERE queue = q.name AND status = 'pending' AND lost_runs > 0
                 ORDER BY priority DESC, ready_xid, ready_seq LIMIT %(suspects)s FOR UPDATE SKIP LOCKED) suspect
          WHERE {runs}
          LIMIT %(suspects)s)
         UNION ALL
        (SELECT usual.c
           FROM unnest(%(queues)s::text[]) AS q(name)
          CROSS JOIN LATERAL (
                SELECT ctid AS c FROM {jobs}
                 WHERE queue = q.name AND status = 'pending' AND lost_runs = 0
                 ORDER BY priority DESC, ready_xid, ready_seq LIMIT %(limit)s FOR UPDATE SKIP LOCKED) usual
          WHERE {runs})
    ) ready
    LIMIT %(limit)s))
RETURNING id, lease_token, type, payload::text, queue, priority, tenant, attempts, max_attempts, lost_runs,
          context::text,
          coalesce(untaken_since < statement_timestamp() - %(patience)s::interval, false),
          ready_xid, ready_seq, statement_timestamp()
