"""Functions in PostgreSQL, for what must be planned once a session and not once a call.

Names inside are found by the caller's search_path, exactly as Django finds the tables. A function is never changed once
it is released: old and new builds run side by side, so a new version gets a new name.
"""

# The probe of the sleepers' lock comes after the row has its place, so the transaction has its id by then. A sleeper
# takes its lock before its own id and its snapshot: whoever misses the lock here is seen there (see worker/wake.py).
ENQUEUE = """
CREATE FUNCTION django_jobs_enqueue(
    job_id uuid, job_queue text, job_type text, job_payload jsonb, job_priority integer, job_tenant text,
    job_max_attempts integer, job_context jsonb, job_run_at timestamptz, job_delay interval)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    due timestamptz := coalesce(job_run_at, statement_timestamp()) + coalesce(job_delay, '0');
    jobs_table int4 := 'django_jobs_job'::regclass::oid::int4;
BEGIN
    IF due > statement_timestamp() THEN
        INSERT INTO django_jobs_job
               (id, queue, type, payload, priority, tenant, max_attempts, context, run_at, status)
        VALUES (job_id, job_queue, job_type, job_payload, job_priority, job_tenant, job_max_attempts, job_context, due,
                'scheduled');
        RETURN 0;
    END IF;
    INSERT INTO django_jobs_job
           (id, queue, type, payload, priority, tenant, max_attempts, context, run_at)
    VALUES (job_id, job_queue, job_type, job_payload, job_priority, job_tenant, job_max_attempts, job_context, due);
    IF pg_try_advisory_lock(jobs_table, hashtext(job_queue)) THEN
        PERFORM pg_advisory_unlock(jobs_table, hashtext(job_queue));
        RETURN 1;
    END IF;
    RETURN 2;
END
$$
"""
DROP_ENQUEUE = (
    "DROP FUNCTION django_jobs_enqueue(uuid, text, text, jsonb, integer, text, integer, jsonb, timestamptz, interval)"
)

# Two callers may pick the same sleeper. It claims what there is, and wakes the next one if its claim came back full.
WAKE = """
CREATE FUNCTION django_jobs_wake(job_queue text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    sleeper integer;
BEGIN
    SELECT pid INTO sleeper
      FROM pg_locks
     WHERE locktype = 'advisory' AND objsubid = 2 AND mode = 'ShareLock' AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND classid = 'django_jobs_job'::regclass AND objid = hashtext(job_queue)::oid
     ORDER BY random() LIMIT 1;
    IF FOUND THEN
        PERFORM pg_notify('django_jobs_' || sleeper, '');
    END IF;
END
$$
"""
DROP_WAKE = "DROP FUNCTION django_jobs_wake(text)"
