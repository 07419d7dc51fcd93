"""What keeps the counts of dead jobs right: triggers that write a change for each row that comes or goes.

By row, because a trigger by statement would fire in every tick of every worker, whether anybody died or not.
"""

TRIGGER = "django_jobs_dead_job_counted"
_INSERT = "INSERT INTO django_jobs_dead_group_change (type, fingerprint, change, failed_at, error_type, error_summary)"
_CAME = f"{_INSERT} VALUES (NEW.type, NEW.fingerprint, 1, NEW.failed_at, NEW.error_type, NEW.error_summary)"
_WENT = f"{_INSERT} VALUES (OLD.type, OLD.fingerprint, -1, OLD.failed_at, '', '')"

POSTGRESQL = [
    f"""
CREATE FUNCTION {TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        {_CAME};
    ELSE
        {_WENT};
    END IF;
    RETURN NULL;
END
$$
""",
    f"""
CREATE TRIGGER {TRIGGER} AFTER INSERT OR DELETE ON django_jobs_dead_job
    FOR EACH ROW EXECUTE FUNCTION {TRIGGER}()
""",
]
DROP_POSTGRESQL = [f"DROP TRIGGER {TRIGGER} ON django_jobs_dead_job", f"DROP FUNCTION {TRIGGER}()"]

SQLITE = [
    f"CREATE TRIGGER {TRIGGER}_in AFTER INSERT ON django_jobs_dead_job BEGIN {_CAME}; END",
    f"CREATE TRIGGER {TRIGGER}_out AFTER DELETE ON django_jobs_dead_job BEGIN {_WENT}; END",
]
DROP_SQLITE = [f"DROP TRIGGER {TRIGGER}_in", f"DROP TRIGGER {TRIGGER}_out"]

# The dead that were there before. Together with the triggers in one transaction, so none is counted twice.
COUNT_EXISTING = (
    f"{_INSERT} SELECT type, fingerprint, 1, failed_at, error_type, error_summary "  # noqa: S608
    "FROM django_jobs_dead_job"
)
