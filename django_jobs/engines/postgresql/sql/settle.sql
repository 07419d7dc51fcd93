-- Write the outcomes of many runs: finish, reschedule or bury, all in one statement.
-- In:    outcomes: a JSON array, at most one for each lease. kind is 'finish', 'again' or 'bury'.
-- Out:   a row for each run written: id, token, kind, status. An id that does not come back is busy (its row is locked) or lost.
-- Index: the primary key. No condition on status: the planner would walk the lease index with every leased and dead row in it.
--        The token alone says that the row is ours.
-- Race:  rows are picked with SKIP LOCKED, so one locked row stops nothing. A row renewed since the snapshot is followed to its
--        newest version by id. A failure of a job whose cancellation was asked for ends it as cancelled; success stays success.
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(outcomes)s::json)
        AS o(id uuid, token bigint, kind text, status text, history_id uuid, duration_ms int, result jsonb, metrics jsonb,
             delay double precision, refund smallint, lost smallint, why text, error jsonb,
             reason text, error_type text, summary text, message text, fingerprint text)
), picked AS MATERIALIZED (
    SELECT j.id, j.lease_token, j.attempts, j.cancel_requested_at IS NOT NULL AS cancelled
      FROM {jobs} j
     WHERE j.id = ANY (ARRAY(SELECT id FROM given)) AND j.lease_token = ANY (ARRAY(SELECT token FROM given))
       FOR UPDATE SKIP LOCKED
), verdict AS MATERIALIZED (
    SELECT given.*,
           CASE WHEN cancelled AND kind <> 'finish' THEN 'finish' ELSE kind END AS final,
           CASE WHEN cancelled AND kind <> 'finish' THEN 'cancelled' ELSE status END AS final_status,
           CASE WHEN error IS NULL THEN NULL
                ELSE jsonb_build_array(error || jsonb_build_object('at', statement_timestamp(), 'attempt', attempts)) END AS new_error
      FROM picked JOIN given ON given.id = picked.id AND given.token = picked.lease_token
), again AS (
    UPDATE {jobs} j
       SET status = 'scheduled', run_at = statement_timestamp() + make_interval(secs => v.delay),
           locked_by = '', locked_until = NULL, lease_token = NULL,
           attempts = greatest(j.attempts - v.refund, 0), lost_runs = j.lost_runs + v.lost,
           untaken_since = CASE v.why WHEN 'untaken' THEN coalesce(j.untaken_since, statement_timestamp())
                                      WHEN 'handed_back' THEN j.untaken_since END,
           last_error = coalesce(v.summary, j.last_error), errors = {errors_with_new}
      FROM verdict v
     WHERE j.id = v.id AND v.final = 'again'
), gone AS (
    DELETE FROM {jobs} j
     WHERE j.id = ANY (ARRAY(SELECT id FROM verdict WHERE final <> 'again'))
    RETURNING j.*
), finished AS (
    INSERT INTO {job_history} (id, job_id, type, queue, tenant, status, attempts, enqueued_at, started_at, finished_at,
                               duration_ms, worker, result, metrics, errors)
    SELECT v.history_id, j.id, j.type, j.queue, j.tenant, v.final_status, j.attempts, j.created_at,
           statement_timestamp() - make_interval(secs => v.duration_ms / 1000.0), statement_timestamp(),
           v.duration_ms, j.locked_by, v.result, v.metrics, {errors_with_new}
      FROM gone j JOIN verdict v ON v.id = j.id
     WHERE v.final = 'finish'
), buried AS (
    INSERT INTO {dead_jobs} (id, queue, type, payload, priority, tenant, run_at, created_at, attempts, max_attempts, lost_runs,
                             untaken_since, idempotency_key, last_error, errors, context, progress,
                             failed_at, reason, error_type, error_summary, fingerprint)
    SELECT j.id, j.queue, j.type, j.payload, j.priority, j.tenant, j.run_at, j.created_at, j.attempts, j.max_attempts,
           j.lost_runs + v.lost, j.untaken_since, j.idempotency_key, coalesce(v.message, ''), {errors_with_new}, j.context,
           j.progress, statement_timestamp(), v.reason, v.error_type, v.summary, v.fingerprint
      FROM gone j JOIN verdict v ON v.id = j.id
     WHERE v.final = 'bury'
)
SELECT id, token, final, final_status FROM verdict
