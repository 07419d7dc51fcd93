-- Enqueue any number of jobs without keys, in text format, on the caller's connection. The fastest way in.
COPY {jobs} (id, queue, type, payload, priority, tenant, max_attempts, context, run_at, status) FROM STDIN
