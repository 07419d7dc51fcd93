-- Prolong leases whose rows somebody else has locked: waits for them, as long as the lock_timeout of the transaction allows.
-- Out:   as renew.sql. Index: the primary key.
UPDATE {jobs} j
   SET locked_until = clock_timestamp() + %(lease)s
 WHERE j.id = ANY (%(ids)s) AND j.lease_token = ANY (%(tokens)s)
RETURNING j.id, j.cancel_requested_at IS NOT NULL
