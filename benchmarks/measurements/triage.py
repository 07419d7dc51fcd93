"""Beside 1,000,000 dead jobs: what do the pages of triage cost, and how fast is a bulk operation?

The dead are of 30 types and 500 groups, over a week; the largest group has a fifth of them. Times are those of the
operations that a page calls. ``burying`` is the settling of 200 runs that all die, with the trigger that counts
against without it.
"""

import time
from collections.abc import Callable
from itertools import starmap
from statistics import median
from uuid import UUID

from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale, in_turns
from benchmarks.tables import empty, execute
from django_jobs.engines.postgresql.outcome_rows import encode_outcomes
from django_jobs.engines.postgresql.queries import query
from django_jobs.failure import Failure
from django_jobs.models import BulkOperation, DeadGroup, DeadGroupChange, DeadGroupHour, DeadJob
from django_jobs.operations.audit import Actor
from django_jobs.operations.bulk import Kind, preview_bulk, start_bulk
from django_jobs.operations.bulk_step import bulk_step
from django_jobs.operations.dead_filter import DeadFilter
from django_jobs.operations.dead_group_counts import fold_changes
from django_jobs.operations.dead_groups import dead_count, dead_group, dead_groups
from django_jobs.outcomes import Buried, DeadReason

ERROR = '[{"type": "ValueError", "message": "no such invoice", "traceback": "%s"}]' % ("frame " * 100)
DEAD = """
INSERT INTO django_jobs_dead_job
       (id, queue, type, payload, tenant, attempts, max_attempts, failed_at, reason, error_type, error_summary,
        last_error, fingerprint, errors)
SELECT gen_random_uuid(), 'default', 'type-' || (kind %% 30), '{"number": 1}', 'tenant-' || (n %% 1000), 1 + n %% 12,
       12, statement_timestamp() - interval '7 days' * (n::float / %s), 'exhausted', 'ValueError',
       'no such invoice in case ' || kind, 'no such invoice', '1:' || lpad(kind::text, 16, '0'), %s
  FROM (SELECT n, CASE WHEN n %% 5 = 0 THEN 0 ELSE n %% 500 END AS kind FROM generate_series(1, %s) n) numbers
"""
RUNS = """
INSERT INTO django_jobs_job
       (id, queue, type, payload, max_attempts, status, attempts, locked_by, locked_until, lease_token)
SELECT gen_random_uuid(), 'default', 'noop', '{"number": 1}', 12, 'processing', 12, 'benchmark',
       statement_timestamp() + interval '1 minute', 1000000 + n
  FROM generate_series(1, %s) n
RETURNING id, lease_token
"""
FAILURE = Failure(error_type="ValueError", message="no such invoice", traceback="frame " * 100)
OPERATOR = Actor(name="benchmark")
FINGERPRINT = "1:" + "0" * 16
LARGEST = DeadFilter(type="type-0", fingerprint=FINGERPRINT)
PAGE = Goal(of="value", most=1000)
BURIED = 200


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    dead = scale.of(1_000_000, 20_000)
    empty("default", *(model._meta.db_table for model in (DeadJob, DeadGroup, DeadGroupChange, DeadGroupHour)))
    with connections["default"].cursor() as cursor:
        cursor.execute(DEAD, [dead, ERROR, dead])
    unfolded = milliseconds(dead_groups)
    folding = folded(dead)
    execute("VACUUM ANALYZE django_jobs_dead_job")
    return [
        Figure.of("the list of groups, nothing folded", [unfolded], "ms"),
        Figure.of("folding", [folding], "changes/s"),
        *(Figure.of(what, page(act, scale.of(20, 3)), "ms", PAGE) for what, act in PAGES.items()),
        Figure.of("queries of the list of groups", [queries(dead_groups)], "", Goal(of="value", most=15)),
        *burying(scale.of(20, 2)),
        bulk_figure("retry", least=1000),
        bulk_figure("discard", least=1000),
    ]


def text_preview() -> object:
    return preview_bulk("retry", DeadFilter(error="in case 17", tenant="tenant-17"))


PAGES: dict[str, Callable[[], object]] = {
    "the list of groups": lambda: dead_groups(hours=168, limit=25),
    "the list of groups, by an error's text": lambda: dead_groups(error="case 17"),
    "the largest group": lambda: dead_group("type-0", FINGERPRINT),
    "how many are dead": dead_count,
    "preview of the largest group": lambda: preview_bulk("retry", LARGEST),
    "preview by text and tenant": text_preview,
}


def milliseconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000


def page(act: Callable[[], object], times: int) -> list[float]:
    act()
    return [milliseconds(act) for _ in range(times)]


def queries(act: Callable[[], object]) -> int:
    with CaptureQueriesContext(connections["default"]) as captured:
        act()
    return len(captured)


def folded(dead: int) -> float:
    start = time.perf_counter()
    while fold_changes():
        pass
    return dead / (time.perf_counter() - start)


def burying(rounds: int) -> list[Figure]:
    sides = {
        "with": lambda: bury("ENABLE"),
        "without": lambda: bury("DISABLE"),
    }
    times = in_turns(sides, rounds)
    execute("ALTER TABLE django_jobs_dead_job ENABLE TRIGGER USER")
    return [Figure.comparing("burying 200 runs", times["with"], "ms", "without the trigger", times["without"])]


def bury(trigger: str) -> float:
    execute(f"ALTER TABLE django_jobs_dead_job {trigger} TRIGGER USER")
    with transaction.atomic(), connections["default"].cursor() as cursor:
        cursor.execute(RUNS, [BURIED])
        outcomes = encode_outcomes(starmap(buried, cursor.fetchall()), "benchmark", 0)
        taken = milliseconds(lambda: cursor.execute(query("settle"), {"outcomes": outcomes}))
        transaction.set_rollback(True)
    return taken


def buried(job_id: UUID, token: int) -> Buried:
    return Buried(job_id=job_id, token=token, reason=DeadReason.EXHAUSTED, failure=FAILURE, fingerprint=FINGERPRINT)


def bulk_figure(kind: Kind, least: int) -> Figure:
    """Batch by batch, as maintenance does it: half of the largest group, and the longest batch."""
    operation = start_bulk(kind, LARGEST, actor=OPERATOR)
    batches = []
    start = time.perf_counter()
    wanted = BulkOperation.objects.get(pk=operation.id)
    while wanted.total is None or wanted.done < wanted.total / 2:
        batches.append(milliseconds(lambda: bulk_step(operation.id)))
        wanted.refresh_from_db()
        if wanted.state == "done":
            break
    rate = wanted.done / (time.perf_counter() - start)
    BulkOperation.objects.filter(pk=operation.id).delete()
    return Figure.of(
        f"bulk {kind} (batch of {median(batches):.0f} ms, longest {max(batches):.0f})",
        [rate],
        "jobs/s",
        Goal(of="value", least=least),
    )
