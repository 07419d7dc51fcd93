-- Take or renew the leadership. No row changes while another process has it. The token grows with each new holder.
-- What ends later than the longest lease was taken before the clock was set back, and does not count.
-- Two that meet here: the second waits for the first one's short transaction, then finds the row taken.
INSERT INTO {leadership} AS l (name, holder, build, token, expires_at)
VALUES (%(name)s, %(worker)s, %(build)s, 1, statement_timestamp() + %(lease)s::interval)
ON CONFLICT (name) DO UPDATE
   SET token = l.token + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END,
       holder = excluded.holder, build = excluded.build, expires_at = excluded.expires_at
 WHERE l.holder = excluded.holder OR l.expires_at <= statement_timestamp()
    OR l.expires_at > statement_timestamp() + %(longest)s::interval
