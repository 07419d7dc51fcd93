-- Give dead jobs up: one statement, so a job is always in exactly one table.
-- In:    ids and history_ids, of the same length.
-- Out:   id of each job moved; ids that are not dead, or that another operator is moving, do not come back.
WITH gone AS (
    DELETE FROM {dead_jobs}
     WHERE id = ANY (ARRAY(SELECT id FROM {dead_jobs} WHERE id = ANY (%(ids)s) FOR UPDATE SKIP LOCKED))
    RETURNING *
)
INSERT INTO {job_history} (id, job_id, type, queue, tenant, status, attempts, enqueued_at, finished_at, errors)
SELECT given.history_id, gone.id, type, queue, tenant, 'discarded', attempts, created_at, statement_timestamp(), errors
  FROM gone JOIN unnest(%(ids)s::uuid[], %(history_ids)s::uuid[]) AS given(id, history_id) ON given.id = gone.id
RETURNING job_id
