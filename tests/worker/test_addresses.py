"""Where the database is, is Django's to say: the worker's own connections go where Django's go, and nowhere else."""

import threading
from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import connection, connections

from django_jobs import enqueue, get_job
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.engines.values import ClaimRequest
from django_jobs.models import Job
from tests.app.models import Mark
from tests.engines.support import own_session
from tests.operations.support import on_postgresql
from tests.waiting import wait_for
from tests.worker.elsewhere import pointed_to
from tests.worker.embedded import drain, running_worker

LOOK = [[], [ClaimRequest(queues=("default",), limit=1)]]


@contextmanager
def schema(name):
    def execute(sql):
        with connection.cursor() as cursor:
            cursor.execute(sql)

    execute(f'CREATE SCHEMA "{name}"')
    try:
        yield
    finally:
        execute(f'DROP SCHEMA "{name}" CASCADE')


@on_postgresql
def test_the_tables_may_be_in_a_schema_that_only_the_search_path_names(job):
    @job("marks", atomic=True)
    def marks():
        Mark.objects.create(label="here")

    @job("plain")
    def plain():
        return "done"

    with schema("jobs elsewhere"), pointed_to(options={"options": '-c search_path="jobs\\ elsewhere"'}):
        connections["default"].close()
        call_command("migrate", verbosity=0, run_syncdb=True)
        enqueued = [marks.enqueue(), plain.using(idempotency_key="k").enqueue(), *plain.enqueue_many([{}])]
        drain()
        assert [get_job(one.id).status for one in enqueued] == ["succeeded"] * 3
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class JOIN pg_inherits ON inhrelid = oid "
                "WHERE inhparent = 'django_jobs_job_history'::regclass"
            )
            assert cursor.fetchall() == [('"jobs elsewhere"',)], "partitions are beside their table"
        connections["default"].close()
    assert not Mark.objects.exists(), "nothing went to public"


@on_postgresql
def test_a_service_file_says_where(tmp_path, monkeypatch):
    parameters = connection.get_connection_params()
    lines = [f"{key}={parameters[key]}" for key in ("host", "port", "dbname", "user", "password") if key in parameters]
    (tmp_path / "services").write_text("\n".join(["[jobs]", *lines]) + "\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    place = dict.fromkeys(["NAME", "HOST", "PORT", "USER", "PASSWORD"], "")
    with pointed_to(**place, options={"service": "jobs"}), own_session() as session:
        assert session.tick(*LOOK).jobs == [[]]
        assert session._connection.info.dbname == parameters["dbname"]


@on_postgresql
@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"options": {"sslmode": "require"}, "HOST": "127.0.0.1", "PORT": "9"}, "127.0.0.1"),
        ({"options": {"sslmode": "nonsense"}}, "sslmode"),
        ({"USER": "nobody we know"}, "nobody we know"),
        ({"NAME": "no such database"}, "no such database"),
    ],
    ids=["port", "sslmode", "user", "name"],
)
def test_what_django_is_told_about_the_server_the_worker_heeds(changed, complaint):
    with pointed_to(**changed), own_session() as session, pytest.raises(EngineUnavailable, match=complaint):
        session.tick(*LOOK)


@on_postgresql
def test_a_password_is_read_when_a_connection_is_made_so_it_may_change(monkeypatch):
    """As with a backend that asks a vault: get_connection_params() is called for each connection."""
    wrapper_type = type(connections["default"])
    real, asked = wrapper_type.get_connection_params, []

    def get_connection_params(self):
        asked.append(1)
        return real(self) | {"password": f"secret {len(asked)}"}

    monkeypatch.setattr(wrapper_type, "get_connection_params", get_connection_params)
    with own_session() as session:
        for number in (1, 2):
            session.tick(*LOOK)
            assert session._connection.info.password == f"secret {number}"
            session.close()


class Replica:
    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "default"

    def allow_relation(self, *_, **__):
        return True


def test_a_replica_for_reads_is_never_asked(job, settings):
    """It does not exist: who asks it fails."""
    connections.settings["replica"] = connections["default"].settings_dict | {"NAME": "/nowhere/replica"}
    settings.DATABASE_ROUTERS = ["tests.worker.test_addresses.Replica"]
    release = threading.Event()

    @job("fails_once")
    def fails_once(run_at: int):
        if not release.is_set():
            release.set()
            raise ValueError("once")
        Mark.objects.create(label="done")

    try:
        one = fails_once.using(idempotency_key="k").enqueue(run_at=1)
        assert fails_once.using(idempotency_key="k").enqueue(run_at=1).id == one.id
        with running_worker():
            wait_for(lambda: get_job(one.id).status == "succeeded")
    finally:
        connections["replica"].close()
        del connections["replica"]
        del connections.settings["replica"]


@on_postgresql
def test_long_names_and_large_payloads_wake_a_sleeper(job, configure):
    queue = "ü" * 199 + "漢"
    configure(QUEUES=["default", queue], MAX_PAYLOAD_BYTES=6_000_000, POLL_EVERY=600)

    @job("large", queue=queue)
    def large(text: str):
        return len(text)

    with running_worker() as worker:
        wait_for(lambda: worker.posture == "asleep")
        enqueued = large.enqueue(text="x" * 5_000_000)
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        wait_for(lambda: worker.posture == "asleep")
        (many,) = large.enqueue_many([{"text": "y"}])
        wait_for(lambda: get_job(many.id).status == "succeeded")
    assert get_job(enqueued.id).result == 5_000_000
    assert enqueue("large", {"text": ""}).status == "pending"
    assert Job.objects.get().queue == queue
