-- What this process holds by the table. Asked after an outage: the answer to a claim may have been lost, not the claim.
-- Index: django_jobs_job_lease, read whole; it holds what runs now.
SELECT id, lease_token FROM {jobs} WHERE status = 'processing' AND locked_by = %(worker)s
