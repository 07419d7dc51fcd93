-- Give the leadership up, if it is ours.
UPDATE {leadership} SET expires_at = statement_timestamp()
 WHERE name = %(name)s AND holder = %(worker)s AND expires_at > statement_timestamp()
