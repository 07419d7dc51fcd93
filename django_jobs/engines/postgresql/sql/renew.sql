-- Prolong the leases of running jobs.
-- Out:   id, and whether its cancellation was asked for. A lease that lapsed but was not taken is renewed.
-- Index: the primary key; SKIP LOCKED, as in settle.sql.
UPDATE {jobs} j
   SET locked_until = statement_timestamp() + %(lease)s
 WHERE j.id = ANY (ARRAY(SELECT id FROM {jobs} WHERE id = ANY (%(ids)s) AND lease_token = ANY (%(tokens)s)
                            FOR UPDATE SKIP LOCKED))
   AND j.lease_token = ANY (%(tokens)s)
RETURNING j.id, j.cancel_requested_at IS NOT NULL
