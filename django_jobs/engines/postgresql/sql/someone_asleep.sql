-- Does a worker of this queue sleep? Asked after a bulk enqueue, before its commit.
SELECT {asleep} FROM (SELECT '{jobs}'::regclass::oid AS tableoid, %(queue)s::text AS queue, 'pending' AS status) j
