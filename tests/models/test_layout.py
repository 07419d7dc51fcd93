"""What PostgreSQL has beyond the models: ready order, partitions, storage."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from django_jobs.ids import uuid7_at
from django_jobs.models import Job, JobHistory
from django_jobs.models.partitions import leaf_name
from tests.operations.support import on_postgresql

pytestmark = [on_postgresql, pytest.mark.django_db]

LEAVES = """
SELECT c.relname, n.nspname, pg_get_expr(c.relpartbound, c.oid), coalesce(c.reloptions, '{}')
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE i.inhparent = 'django_jobs_job_history'::regclass ORDER BY 1
"""


def select(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def today():
    return datetime.now(UTC).date()


def test_the_history_has_a_partition_for_a_week_ahead_and_none_for_the_rest():
    leaves = {name: bound for name, _, bound, _ in select(LEAVES)}
    for days in range(-1, 8):
        assert leaf_name(today() + timedelta(days=days)) in leaves
    assert all("DEFAULT" not in bound for bound in leaves.values())


def test_the_partitions_are_adjacent():
    bounds = [bound.replace("'", "").split() for _, _, bound, _ in select(LEAVES)]
    ends = [bound[-1] for bound in bounds[:-1]]
    starts = [bound[3] for bound in bounds[1:]]
    assert ends == starts


def test_each_partition_is_vacuumed_soon():
    for name, _, _, options in select(LEAVES):
        assert "autovacuum_freeze_min_age=0" in options, name


def test_a_row_goes_to_the_partition_of_its_day():
    at = datetime.now(UTC) + timedelta(days=3)
    JobHistory.objects.create(
        id=uuid7_at(at), job_id=uuid7_at(at), type="t", queue="q", status="succeeded", enqueued_at=at
    )
    ((table,),) = select("SELECT tableoid::regclass::text FROM django_jobs_job_history")
    assert table == leaf_name(at.date())


def test_the_database_sets_the_ready_order():
    first, second = (Job.objects.create(queue="q", type="t", payload={}, max_attempts=1) for _ in range(2))
    for job in (first, second):
        job.refresh_from_db()
    ((xid,),) = select("SELECT pg_current_xact_id()::text::bigint")
    assert first.ready_xid == second.ready_xid == xid
    assert 0 < first.ready_seq < second.ready_seq


def test_the_other_defaults_are_the_databases_too():
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_jobs_job (id, queue, type, payload, max_attempts) "
            "VALUES (gen_random_uuid(), 'q', 't', '{}', 1)"
        )
    job = Job.objects.get()
    assert (job.status, job.priority, job.tenant, job.attempts, job.errors, job.context) == (
        "pending",
        0,
        "",
        0,
        [],
        {},
    )
    assert abs(job.run_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert job.created_at is not None


def test_the_jobs_are_vacuumed_often_and_at_full_speed():
    ((options,),) = select("SELECT reloptions FROM pg_class WHERE oid = 'django_jobs_job'::regclass")
    assert {"autovacuum_vacuum_scale_factor=0", "autovacuum_vacuum_cost_delay=0"} <= set(options)


def test_each_further_index_of_the_jobs_is_partial():
    indexes = dict(select("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'django_jobs_job'"))
    assert len(indexes) == 5
    for name, definition in indexes.items():
        assert " WHERE " in definition or name.endswith("_pkey"), definition


def test_no_table_refers_to_the_jobs():
    assert (
        select("SELECT conname FROM pg_constraint WHERE contype = 'f' AND confrelid = 'django_jobs_job'::regclass")
        == []
    )
