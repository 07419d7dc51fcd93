-- Enqueue many jobs that share their options, each unless its key is taken.
-- In:    the shared columns; rows: a JSON array of id, payload, delay (seconds after run_at), key, payload_hash (hex).
-- Out:   a row for each job really enqueued: id, status. The others' keys are taken.
-- Race:  keys are inserted in the order of their code points, so two bulks with overlapping keys wait for each other but never in a circle.
WITH given AS MATERIALIZED (
    SELECT r.*, coalesce(%(run_at)s, statement_timestamp()) + make_interval(secs => r.delay) AS due
      FROM json_to_recordset(%(rows)s::json)
        AS r(id uuid, payload jsonb, delay double precision, key text, payload_hash text)
), claimed AS (
    INSERT INTO {idempotency_keys} (queue, key, job_id, payload_hash, expires_at)
    SELECT %(queue)s, key, id, decode(payload_hash, 'hex'), greatest(statement_timestamp(), due) + %(retention)s
      FROM given ORDER BY key COLLATE "C"
    ON CONFLICT (queue, key) DO NOTHING
    RETURNING job_id
)
INSERT INTO {jobs} (id, queue, type, payload, priority, tenant, max_attempts, context, idempotency_key, run_at, status)
SELECT id, %(queue)s, %(type)s, payload, %(priority)s, %(tenant)s, %(max_attempts)s, %(context)s, key, due,
       CASE WHEN due <= statement_timestamp() THEN 'pending' ELSE 'scheduled' END
  FROM given JOIN claimed ON claimed.job_id = given.id
RETURNING id, status
