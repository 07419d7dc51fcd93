-- Who holds a key?
-- Out:   job_id, payload_hash, free (expired, and its job is neither unfinished nor dead); no row when nobody does.
-- Index: the primary keys.
SELECT k.job_id, k.payload_hash,
       k.expires_at <= statement_timestamp()
       AND NOT EXISTS (SELECT FROM {jobs} WHERE id = k.job_id)
       AND NOT EXISTS (SELECT FROM {dead_jobs} WHERE id = k.job_id)
  FROM {idempotency_keys} k
 WHERE k.queue = %(queue)s AND k.key = %(key)s
