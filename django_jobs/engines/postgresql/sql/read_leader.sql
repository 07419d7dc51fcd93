-- Who leads, of which build, and for how long yet.
-- Index: the primary key.
SELECT holder, build, expires_at - statement_timestamp() FROM {leadership} WHERE name = %(name)s
