-- Show how far running jobs are. In: progress: a JSON array of id, token, progress. Index: the primary key; SKIP LOCKED.
UPDATE {jobs} j
   SET progress = v.progress
  FROM json_to_recordset(%(progress)s::json) AS v(id uuid, token bigint, progress jsonb)
 WHERE j.id = ANY (ARRAY(SELECT id FROM {jobs} WHERE id = ANY (%(ids)s) FOR UPDATE SKIP LOCKED))
   AND j.id = v.id AND j.lease_token = v.token
