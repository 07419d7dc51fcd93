-- The queue and priority of every group of scheduled jobs, with the seconds until its earliest run_at.
-- Index: django_jobs_job_due, see _HOP.
WITH RECURSIVE {hop}
SELECT queue, priority, extract(epoch FROM run_at - statement_timestamp())::double precision FROM hop ORDER BY priority DESC
