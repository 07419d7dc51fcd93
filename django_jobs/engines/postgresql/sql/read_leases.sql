-- Which of these runs still hold their lease? Asked for the ids that settle.sql or renew.sql did not return.
-- Out:   id, token of the rows there are; a row with our token is busy, any other answer means lost.
SELECT id, lease_token FROM {jobs} WHERE id = ANY (%(ids)s)
