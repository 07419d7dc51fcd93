-- Who leads, and for how long yet.
-- Index: the primary key.
SELECT holder, expires_at - statement_timestamp() FROM {leadership} WHERE name = %(name)s
