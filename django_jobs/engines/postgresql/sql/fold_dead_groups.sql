-- Add changes of dead jobs up into their groups and hours, at most limit of them.
-- Out:   how many changes.
-- Race:  changes that another process holds are passed over, so each is added up once. Groups are written in the order of their
--        keys: two processes may wait for each other, but never in a circle. Nobody else writes these rows.
WITH taken AS MATERIALIZED (
    DELETE FROM {dead_group_changes}
     WHERE id = ANY (ARRAY(SELECT id FROM {dead_group_changes} ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
    RETURNING type, fingerprint, change, failed_at, error_type, error_summary
), groups AS (
    INSERT INTO {dead_groups} AS g (type, fingerprint, count, first_seen, last_seen, first_release, error_type, error_summary)
    SELECT type, fingerprint, sum(change), min(failed_at), max(failed_at), %(release)s, max(error_type), max(error_summary)
      FROM taken
     GROUP BY type, fingerprint
     ORDER BY type, fingerprint
        ON CONFLICT (type, fingerprint) DO UPDATE
       SET count = g.count + excluded.count,
           first_seen = least(g.first_seen, excluded.first_seen), last_seen = greatest(g.last_seen, excluded.last_seen),
           error_type = coalesce(nullif(excluded.error_type, ''), g.error_type),
           error_summary = coalesce(nullif(excluded.error_summary, ''), g.error_summary)
), hours AS (
    INSERT INTO {dead_group_hours} AS h (type, fingerprint, hour, count)
    SELECT type, fingerprint, date_trunc('hour', failed_at, 'UTC') AS hour, count(*)
      FROM taken
     WHERE change > 0
     GROUP BY 1, 2, 3
     ORDER BY 1, 2, 3
        ON CONFLICT (type, fingerprint, hour) DO UPDATE SET count = h.count + excluded.count
)
SELECT count(*) FROM taken
