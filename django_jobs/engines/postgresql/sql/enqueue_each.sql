-- Enqueue some hundred jobs, each with options of its own and without a key, in one trip.
-- In:    jobs: a JSON array of id, queue, type, payload, priority, tenant, max_attempts, context, run_at, delay (seconds).
-- Out:   a row for each, in order: what django_jobs_enqueue answers (see enqueue.sql).
SELECT django_jobs_enqueue(id, queue, type, payload, priority, tenant, max_attempts, context, run_at,
                           make_interval(secs => delay))
  FROM json_to_recordset(%s::json)
    AS j(id uuid, queue text, type text, payload jsonb, priority integer, tenant text, max_attempts integer,
         context jsonb, run_at timestamptz, delay double precision)
