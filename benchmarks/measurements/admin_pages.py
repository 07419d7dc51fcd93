"""The admin's pages beside 5,000,000 finished, 1,000,000 dead and 500,000 pending jobs.

Each page is asked for by Django's test client, as a superuser: from the request to the rendered page, without a
network. The rows come by INSERT … SELECT: history over the last day, dead jobs of 200 groups and 1,000 tenants, pending
jobs of two queues. A filter that matches nothing is the worst that a viewer can ask for.
"""

import time
from collections.abc import Callable, Iterator

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from benchmarks.tables import empty, execute

SECOND = Goal(of="value", most=1000)
QUERIES = Goal(of="value", most=15)

# A UUIDv7 of an instant, with random digits behind it.
UUID7 = """
(lpad(to_hex((extract(epoch FROM {at}) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3)
 || '8' || substr(md5(random()::text), 1, 15))::uuid
"""
HISTORY = f"""
INSERT INTO django_jobs_job_history
       (id, job_id, type, queue, tenant, status, attempts, enqueued_at, started_at, finished_at, duration_ms, worker)
SELECT {UUID7.format(at="at")}, gen_random_uuid(), 'type-' || n %% 50, 'default', 'tenant-' || n %% 1000,
       CASE WHEN n %% 1000 = 0 THEN 'cancelled' ELSE 'succeeded' END, 1, at, at, at, 40, 'worker-1'
  FROM (SELECT n, statement_timestamp() - interval '23 hours' * n / %(count)s AS at
          FROM generate_series(1, %(count)s) AS n) AS rows
"""
DEAD = f"""
INSERT INTO django_jobs_dead_job
       (id, queue, type, payload, tenant, attempts, max_attempts, failed_at, reason, error_type, error_summary,
        fingerprint, last_error)
SELECT {UUID7.format(at="at")}, 'default', 'type-' || n %% 50, '{{"number": 1}}', 'tenant-' || n %% 1000, 12, 12, at,
       'exhausted', 'ValueError', 'no invoice ' || n %% 200, '1:' || md5((n %% 200)::text), 'no invoice'
  FROM (SELECT n, statement_timestamp() - interval '7 days' * n / %(count)s AS at
          FROM generate_series(1, %(count)s) AS n) AS rows
"""
PENDING = f"""
INSERT INTO django_jobs_job (id, queue, type, payload, tenant, max_attempts, priority)
SELECT {UUID7.format(at="at")}, CASE WHEN n %% 2 = 0 THEN 'default' ELSE 'other' END, 'noop', '{{"number": 1}}',
       'tenant-' || n %% 1000, 12, n %% 5
  FROM (SELECT n, statement_timestamp() - interval '1 hour' * n / %(count)s AS at
          FROM generate_series(1, %(count)s) AS n) AS rows
"""


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    fill(scale)
    client = superuser()
    return [figure for what, address in pages() for figure in figures_of(client, what, address, scale.of(7, 2))]


def fill(scale: Scale) -> None:
    from django_jobs.operations.dead_group_counts import fold_changes

    empty("default", "django_jobs_dead_job", "django_jobs_dead_group", "django_jobs_dead_group_change")
    with connection.cursor() as cursor:
        cursor.execute(HISTORY, {"count": scale.of(5_000_000, 20_000)})
        cursor.execute(DEAD, {"count": scale.of(1_000_000, 5_000)})
        cursor.execute(PENDING, {"count": scale.of(500_000, 5_000)})
    while fold_changes():
        pass
    execute("VACUUM ANALYZE")


def superuser() -> Client:
    from django.contrib.auth.models import User

    client = Client()
    client.force_login(User.objects.create_superuser(f"viewer-{time.monotonic_ns()}", password=None))
    return client


def pages() -> Iterator[tuple[str, str]]:
    from django_jobs.models import DeadJob, Job, JobHistory

    dead, live, done = DeadJob.objects.first(), Job.objects.first(), JobHistory.objects.first()
    assert dead is not None
    assert live is not None
    assert done is not None
    yield "overview", page("job_overview")
    yield "dead groups", page("deadjob_groups")
    yield "dead group", page("deadjob_group", type=dead.type, fingerprint=dead.fingerprint)
    for name in ("job", "deadjob", "jobhistory"):
        address = page(f"{name}_changelist")
        yield f"{name} list", address
        yield f"{name} list, filter", f"{address}?tenant=tenant-7"
        yield f"{name} list, filter that matches nothing", f"{address}?tenant=nobody"
    yield "deadjob list, error contains", page("deadjob_changelist", error="no such thing")
    yield "jobhistory list, rare status", page("jobhistory_changelist", status="discarded")
    yield "jobhistory list, by id", page("jobhistory_changelist", q=str(done.job_id))
    yield "dead job", page("job_change", dead.pk)
    yield "pending job", page("job_change", live.pk)
    yield "finished job", page("job_change", done.job_id)
    yield "queues", page("queue_changelist")


def page(name: str, *args: object, **query: str) -> str:
    return reverse(f"admin:django_jobs_{name}", args=args, query=query or None)


def figures_of(client: Client, what: str, address: str, times: int) -> Iterator[Figure]:
    with CaptureQueriesContext(connection) as captured:
        get(client, address)()
        statements = len(captured)
    yield Figure.of(what, [timed(get(client, address)) for _ in range(times)], "ms", SECOND)
    yield Figure.of(f"{what}, statements", [statements], "", QUERIES)


def get(client: Client, address: str) -> Callable[[], None]:
    def ask() -> None:
        response = client.get(address)
        if response.status_code != 200:
            raise RuntimeError(f"{address} answered {response.status_code}.")

    return ask


def timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000
