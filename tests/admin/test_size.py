"""What a page asks of the database: a bounded number of statements, none of which counts or sorts a big table."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobs.admin import dead_jobs, listing
from django_jobs.conf import get_settings
from tests.factories import (
    DeadJobFactory,
    JobCountFactory,
    JobFactory,
    JobHistoryFactory,
    WorkerFactory,
)
from tests.operations.support import on_postgresql

from .support import url

pytestmark = pytest.mark.django_db

MOST = 15
BIG = ("django_jobs_job", "django_jobs_dead_job", "django_jobs_job_history")


@pytest.fixture
def rows():
    """Enough for second pages, in every table."""
    JobFactory.create_many(120)
    JobFactory.create_many(10, processing=True)
    JobFactory.create_many(60, scheduled=True, last_error="x")
    dead = DeadJobFactory.create_many(120, tenant="acme")
    DeadJobFactory.create_many(10, type="other", fingerprint="1:ff")
    JobHistoryFactory.create_batch(60)
    WorkerFactory.create_batch(5)
    JobCountFactory()
    return dead


def addresses(dead):
    """Every page, with the filters that a viewer has."""
    yield url("job_overview")
    yield from (
        url(f"{name}_changelist") for name in ("queue", "worker", "schedule", "alert", "bulkoperation", "auditentry")
    )
    filters = ("", "?queue=default", "?type=noop", "?tenant=acme", "?q=acme")
    for query in (*filters, "?status=pending", "?status=processing", "?status=scheduled", "?status=failed_retrying"):
        yield url("job_changelist") + query
    for query in (*filters, "?reason=timeout", "?error=x", "?type=noop&fingerprint=1:0123456789abcdef", "?age=1h"):
        yield url("deadjob_changelist") + query
    for query in (*filters, "?status=cancelled", "?age=all", "?age=1h", f"?q={dead[0].pk}"):
        yield url("jobhistory_changelist") + query
    yield url("deadjob_groups")
    yield url("deadjob_groups") + "?order=last_seen"
    yield url("deadjob_group") + "?type=noop&fingerprint=1:0123456789abcdef"
    yield url("job_change", dead[0].pk)


def statements_of(client, address):
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
    assert response.status_code == 200, address
    return [query["sql"] for query in captured], response


def faults(sql):
    """Why a statement could take long on a big table."""
    if "DISTINCT" in sql.upper():
        yield "DISTINCT"
    if re.search(r"\bOFFSET (?!\d+\b)", sql) or (
        re.search(r"OFFSET (\d+)", sql) and int(re.search(r"OFFSET (\d+)", sql)[1]) > 100_000
    ):
        yield "OFFSET"
    if not any(re.search(rf'"?{table}"?[\s.]', sql) for table in BIG):
        return
    if re.search(r"COUNT\(", sql, re.IGNORECASE) and "LIMIT" not in sql:
        yield "full count"
    if not re.search(r"LIMIT|\"id\" = |job_id\" = |\"id\" IN|ctid", sql):
        yield "no limit"


def test_pages_ask_little_however_much_there_is(boss, rows):
    for address in addresses(rows):
        statements, _ = statements_of(boss, address)
        assert len(statements) <= MOST, (address, statements)
        assert {sql: found for sql in statements if (found := list(faults(sql)))} == {}, address


def test_second_pages_start_behind_the_first_one_and_skip_nothing(boss, rows):
    for name in ("job", "deadjob", "jobhistory"):
        _, first = statements_of(boss, url(f"{name}_changelist"))
        statements, _ = statements_of(
            boss, url(f"{name}_changelist") + "?" + urlencode({"before": first.context["rows"].older})
        )
        assert any(" < " in sql and "LIMIT 51" in sql for sql in statements), statements
        assert not any("OFFSET" in sql for sql in statements)


def test_a_page_with_many_queues_has_as_many_statements(boss, rows, settings):
    few, _ = statements_of(boss, url("job_overview"))
    settings.DJANGO_JOBS = {"QUEUES": [f"queue-{n}" for n in range(40)]}
    get_settings.cache_clear()
    many, _ = statements_of(boss, url("job_overview"))
    assert len(many) == len(few)


def test_more_rows_make_no_more_statements(boss, rows):
    few = {address: len(statements_of(boss, address)[0]) for address in addresses(rows)}
    DeadJobFactory.create_many(300, type="third", fingerprint="1:aa")
    JobFactory.create_many(300)
    WorkerFactory.create_batch(30)
    for address, count in few.items():
        assert len(statements_of(boss, address)[0]) <= count + 1, address


@on_postgresql
def test_a_filter_reads_no_more_of_the_index_than_its_span(boss, monkeypatch):
    """Dead jobs are ordered by two columns: the span has to be a range of the index all the same."""
    monkeypatch.setattr(dead_jobs, "LISTING", listing.Listing(newest_first=("failed_at", "id"), span=200))
    start = timezone.now()
    jobs = [DeadJobFactory.build(failed_at=start + timedelta(seconds=n)) for n in range(5_000)]
    DeadJobFactory._meta.model.objects.bulk_create(jobs)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE django_jobs_dead_job")
        statements, _ = statements_of(boss, url("deadjob_changelist") + "?tenant=nobody")
        (search,) = [sql for sql in statements if "\"tenant\" = 'nobody'" in sql]
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT TEXT) {search}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    removed = sum(int(rows) for rows in re.findall(r"Rows Removed by Filter: (\d+)", plan))
    assert plan.count("Index Cond") == 1, plan
    assert removed <= 200, plan


@on_postgresql
def test_the_figures_of_queues_come_from_indexes(boss):
    JobFactory.create_many(20_000, queue="default")
    JobFactory.create_many(5_000, queue="bulk", priority=3)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE django_jobs_job")
        statements, _ = statements_of(boss, url("queue_changelist"))
        (figures,) = [sql for sql in statements if "WITH RECURSIVE" in sql]
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT TEXT) {figures}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    read = sum(int(rows) for rows in re.findall(r"Scan.*actual time=\S+ rows=(\d+)", plan))
    assert read < 60_000
