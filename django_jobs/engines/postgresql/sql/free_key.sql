-- Give up an expired key, so that enqueue_with_key.sql can take it. Rare, and so kept out of the enqueueing statement, where
-- ON CONFLICT DO UPDATE would make every duplicate wait for the first one's business transaction.
-- Race:  only the job_id that was read is removed; a concurrent taker of the key leaves nothing to delete.
DELETE FROM {idempotency_keys}
 WHERE queue = %(queue)s AND key = %(key)s AND job_id = %(job_id)s AND expires_at <= statement_timestamp()
