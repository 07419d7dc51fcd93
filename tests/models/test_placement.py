"""Jobs on another alias, or in another schema (search_path set by OPTIONS only, public not on it): all works there."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db import connections, transaction

from django_jobs import cancel, discard_dead, engines, get_job, pause, resume, retry_dead
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.values import ClaimRequest
from django_jobs.models import Job, JobHistory
from django_jobs.models.partitions import leaf_name
from django_jobs.outcomes import Buried, Finished
from django_jobs.routers import JobsRouter
from tests.operations.handlers import note
from tests.operations.support import FAILURE, on_postgresql


@pytest.fixture
def elsewhere(empty_alias, settings):
    """The jobs' alias, with the router and without any other app's tables."""
    settings.DJANGO_JOBS = {"DATABASE": empty_alias, "QUEUES": ["default"]}
    settings.DATABASE_ROUTERS = ["django_jobs.routers.JobsRouter"]
    call_command("migrate", "django_jobs", database=empty_alias, verbosity=0)
    return empty_alias


@pytest.fixture
def session(elsewhere):
    opened = engines.open_session(EngineConfig(alias=elsewhere, worker="w"))
    yield opened
    opened.close()


def claim(session):
    ((job,),) = session.tick([], [ClaimRequest(queues=("default",), limit=1)]).jobs
    return job


def test_a_job_runs_its_whole_course(session, elsewhere):
    with transaction.atomic(using=elsewhere):
        job = note.using(idempotency_key="k").enqueue(text="a")
    claimed = claim(session)
    assert claimed.id == job.id
    session.renew({claimed.id: claimed.token})
    session.tick([Finished(job_id=claimed.id, token=claimed.token)], [])
    assert get_job(job.id).status == "succeeded"
    assert note.using(idempotency_key="k").enqueue(text="a").duplicate
    assert JobHistory.objects.count() == 1
    assert not JobHistory.objects.using("default").exists()


def test_a_job_dies_and_is_retried_and_discarded(session):
    job = note.enqueue(text="a")
    for move in (retry_dead, discard_dead):
        claimed = claim(session)
        session.tick(
            [Buried(job_id=claimed.id, token=claimed.token, reason="exhausted", failure=FAILURE, fingerprint="")], []
        )
        assert get_job(job.id).status == "dead"
        assert move(job.id) == 1
    assert get_job(job.id).status == "discarded"


def test_a_scheduled_job_is_staged(session, elsewhere):
    note.using(delay=timedelta(hours=1)).enqueue(text="a")
    assert session.stage().staged == 0
    Job.objects.using(elsewhere).update(run_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert session.stage().staged == 1
    assert claim(session) is not None


def test_the_other_operations_work(session, elsewhere):
    keyed = note.enqueue_many([{"text": "a"}, {"text": "b"}], idempotency_keys=["a", "b"])
    plain = note.enqueue_many([{"text": "c"}])
    for job in [*keyed, *plain]:
        assert cancel(job.id) == "cancelled"
    pause("default")
    resume("default")
    assert Job.objects.using(elsewhere).count() == 0
    assert not Job.objects.using("default").exists()


@on_postgresql
def test_a_sleeper_is_woken(session):
    from tests.waiting import wait_for

    assert session.can_listen()
    assert session.lie_down(["default"])
    note.enqueue(text="a")
    wait_for(session.take_notification, timeout=2)


@on_postgresql
def test_partitions_are_made_beside_their_parent(elsewhere):
    day = datetime.now(UTC).date() + timedelta(days=30)
    connection = connections[elsewhere]
    assert engines.statements(elsewhere).add_partitions(connection, [day]) == 1
    assert engines.statements(elsewhere).add_partitions(connection, [day]) == 0
    with connection.cursor() as cursor:
        cursor.execute("SHOW search_path")
        (schema,) = cursor.fetchone()
        cursor.execute("SELECT schemaname FROM pg_tables WHERE tablename = %s", [leaf_name(day)])
        assert cursor.fetchall() == [(schema,)]
        cursor.execute("SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = %s", [leaf_name(day)])
        assert cursor.fetchall() == [(schema,)]


@on_postgresql
def test_a_missing_partition_is_made_in_the_schema_when_a_row_needs_it(elsewhere):
    today = datetime.now(UTC).date()
    with connections[elsewhere].cursor() as cursor:
        for days in (-1, 0, 1):
            cursor.execute(f"DROP TABLE {leaf_name(today + timedelta(days=days))}")
    job = note.enqueue(text="a")
    assert cancel(job.id) == "cancelled"
    assert get_job(job.id).status == "cancelled"


class TestRouter:
    def test_it_sends_only_our_tables_to_their_alias(self, settings):
        from django.contrib.auth.models import Group

        settings.DJANGO_JOBS = {"DATABASE": "other"}
        router = JobsRouter()
        assert router.db_for_read(Job) == router.db_for_write(Job) == "other"
        assert router.db_for_read(Group) is router.db_for_write(Group) is None

    def test_it_lets_our_tables_be_made_only_there(self, settings):
        settings.DJANGO_JOBS = {"DATABASE": "other"}
        router = JobsRouter()
        assert router.allow_migrate("other", "django_jobs") is True
        assert router.allow_migrate("default", "django_jobs") is False
        assert router.allow_migrate("other", "auth") is None
        assert router.allow_migrate("default", "auth", model_name="group") is None


def test_the_router_keeps_our_tables_out_of_the_default_alias(empty_alias, settings):
    settings.DJANGO_JOBS = {"DATABASE": "other"}
    settings.DATABASE_ROUTERS = ["django_jobs.routers.JobsRouter"]
    call_command("migrate", "django_jobs", database=empty_alias, verbosity=0)
    with connections[empty_alias].cursor() as cursor:
        names = connections[empty_alias].introspection.table_names(cursor)
    assert [name for name in names if name.startswith("django_jobs")] == []
