"""The system checks: what they report, that they say what to do, and that they connect to nothing unasked."""

import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO

import pytest
from django.core.checks import Error, Tags, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection, connections, router
from django.db.utils import ConnectionHandler
from django.utils import timezone

from django_jobs import checks, job
from django_jobs.registry import Registry
from tests.factories import WorkerFactory
from tests.operations.support import on_postgresql, on_sqlite


def found(databases=None):
    messages = [*run_checks(tags=[checks.TAG]), *checks.check_server(app_configs=None, databases=databases)]
    return {message.id: message for message in messages}


def text(message):
    return f"{message.msg} {message.hint}"


@pytest.fixture
def django_jobs(settings):
    def change(**values):
        settings.DJANGO_JOBS = {"QUEUES": ["default", "urgent", "bulk"], **values}

    return change


def test_the_test_settings_are_in_order():
    assert found() == {}


def test_every_message_is_of_this_app_and_says_what_to_do(django_jobs):
    django_jobs(DATABASE="nowhere", HARMLESS_ALIASES=["cache"])
    messages = found()
    assert set(messages) == {"django_jobs.E003", "django_jobs.W003"}
    assert all(message.hint for message in messages.values())


def test_wrong_settings_are_reported_once_with_every_fault(django_jobs):
    django_jobs(CONCURENCY=5, LEASE="soon")
    messages = found(databases=["default"])
    assert set(messages) == {"django_jobs.E001"}
    assert "Did you mean 'CONCURRENCY'" in messages["django_jobs.E001"].msg
    assert "LEASE" in messages["django_jobs.E001"].msg


@pytest.mark.parametrize("value", [None, [], 5], ids=repr)
def test_a_setting_that_is_no_dict_is_reported(settings, value):
    settings.DJANGO_JOBS = value
    assert "must be a dict" in found()["django_jobs.E001"].msg


def test_an_unknown_alias_names_the_nearest_and_all(django_jobs):
    django_jobs(DATABASE="defualt")
    message = found(databases=["default", "other"])["django_jobs.E003"]
    assert "Did you mean 'default'" in message.msg
    assert "default, other" in message.hint


def test_an_unknown_harmless_alias_names_the_nearest(django_jobs):
    django_jobs(HARMLESS_ALIASES=["othr"])
    assert "Did you mean 'other'" in found()["django_jobs.W003"].msg


@pytest.mark.parametrize(("alias", "id"), [("default", "django_jobs.E009"), ("other", "django_jobs.W004")])
def test_a_database_without_autocommit_is_reported(monkeypatch, alias, id):
    monkeypatch.setitem(connections.settings[alias], "AUTOCOMMIT", False)
    message = found()[id]
    assert f"{alias!r}" in message.msg
    assert "Remove AUTOCOMMIT" in message.hint


def test_an_unsupported_vendor_is_an_error(monkeypatch):
    monkeypatch.setattr(connection, "vendor", "mysql", raising=False)
    message = found()["django_jobs.E002"]
    assert "mysql; jobs can live in PostgreSQL or SQLite" in message.msg
    assert "DATABASE" in message.hint


@on_sqlite
@pytest.mark.parametrize("mode", [None, "DEFERRED", "exclusive"])
def test_sqlite_without_immediate_transactions_is_warned_of(monkeypatch, mode):
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "transaction_mode", mode)
    message = found()["django_jobs.W001"]
    assert "['OPTIONS']['transaction_mode'] = 'IMMEDIATE'" in message.hint


@on_sqlite
def test_immediate_may_be_in_lower_case(monkeypatch):
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "transaction_mode", "immediate")
    assert found() == {}


@on_postgresql
def test_psycopg_2_is_an_error(monkeypatch):
    monkeypatch.setattr("django.db.backends.postgresql.psycopg_any.is_psycopg3", False)
    message = found()["django_jobs.E005"]
    assert "psycopg2" in message.msg
    assert "pip install" in message.hint


def test_a_missing_driver_is_an_error(monkeypatch):
    def fail(*_):
        raise ImproperlyConfigured("Error loading psycopg2 or psycopg module")

    monkeypatch.setattr(ConnectionHandler, "__getitem__", fail)
    assert "Error loading psycopg2" in found(databases=["default"])["django_jobs.E005"].msg


def test_jobs_kept_elsewhere_need_the_router(django_jobs, settings):
    django_jobs(DATABASE="other")
    message = found()["django_jobs.E004"]
    assert "sends jobs to 'default'" in message.msg
    assert "django_jobs.routers.JobsRouter" in message.hint


@pytest.fixture
def routers(monkeypatch):
    def use(*routers):
        monkeypatch.setattr(router, "routers", list(routers))

    return use


def test_jobs_kept_elsewhere_with_the_router_are_in_order(django_jobs, routers):
    from django_jobs.routers import JobsRouter

    django_jobs(DATABASE="other")
    routers(JobsRouter())
    assert found() == {}


def test_a_router_that_sends_jobs_elsewhere_is_an_error(routers):
    class Everything:
        def db_for_write(self, model, **hints):
            return "other"

    routers(Everything())
    assert "sends jobs to 'other'" in found()["django_jobs.E004"].msg


def test_a_router_that_keeps_the_tables_from_being_made_is_an_error(routers):
    class Nothing:
        def allow_migrate(self, db, app_label, **hints):
            return False

    routers(Nothing())
    assert "does not let their tables be made" in found()["django_jobs.E004"].msg


def test_a_job_type_of_an_undeclared_queue_is_an_error(monkeypatch):
    made = Registry()
    monkeypatch.setattr("django_jobs.handle.registry", made)
    monkeypatch.setattr(checks, "registry", made)

    @job("fine")
    def fine(): ...

    @job("lost", queue="urgnt")
    def lost(): ...

    message = found()["django_jobs.E006"]
    assert "'lost': Queue 'urgnt' is not declared. Did you mean 'urgent'?" in message.msg


def test_alerts_by_mail_without_admins_are_warned_of(settings, django_jobs):
    settings.ADMINS = []
    django_jobs(NOTIFIERS=["log"])
    assert found() == {}
    django_jobs(NOTIFIERS=["log", "mail"])
    assert "set ADMINS" in text(found()["django_jobs.W006"]).replace("Set", "set")
    settings.ADMINS = [("Ada", "ada@example.com")]
    assert found() == {}


def test_without_time_zones_is_an_error(settings):
    settings.USE_TZ = False
    assert "USE_TZ = True" in found()["django_jobs.E008"].hint


@on_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("value", ["on", "local", "off"])
def test_synchronous_commit_off_is_warned_of(value):
    with connection.cursor() as cursor:
        cursor.execute(f"SET synchronous_commit = {value}")
    messages = found(databases=["default"])
    with connection.cursor() as cursor:
        cursor.execute("RESET synchronous_commit")
    assert set(messages) == ({"django_jobs.W002"} if value == "off" else set())
    if value == "off":
        assert "ALTER ROLE" in messages["django_jobs.W002"].hint


@on_postgresql
@pytest.mark.django_db(transaction=True)
def test_an_old_server_is_an_error(monkeypatch):
    connection.close()
    monkeypatch.setattr(connection.features, "minimum_database_version", (99,))
    monkeypatch.setattr("django.db.backends.base.base.RAN_DB_VERSION_CHECK", set())
    message = found(databases=["default"])["django_jobs.E007"]
    assert isinstance(message, Error)
    assert "99 or later is required" in message.msg


def fleet_of(*slots, **values):
    for size in slots:
        WorkerFactory(queues=[{"queues": ["default"], "slots": size - 1}, {"queues": ["urgent"], "slots": 1}], **values)


def budget_warning():
    return found(databases=["default"]).get("django_jobs.W005")


def allowed_connections():
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        return int(cursor.fetchone()[0]) - 3


def limit_role(connections):
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER ROLE CURRENT_USER CONNECTION LIMIT {connections}")


@pytest.fixture
def no_job_types(monkeypatch):
    monkeypatch.setattr(checks, "registry", [])


@on_postgresql
@pytest.mark.django_db
def test_workers_that_may_open_more_connections_than_the_server_allows_are_warned_of(no_job_types):
    """Each its slots and four; two for the leader, and two for a supervisor on each machine."""
    allowed = allowed_connections()
    processes = (allowed - 4) // 20
    fleet_of(*[16] * processes)
    fleet_of(500, stopped_at=timezone.now())
    fleet_of(500, last_seen_at=timezone.now() - timedelta(minutes=5))
    assert budget_warning() is None
    fleet_of(16)
    message = budget_warning()
    assert f"may open {(processes + 1) * 20 + 4} connections" in message.msg
    assert f"allows {allowed}" in message.msg
    assert f"Worker processes: {processes + 1}" in message.msg


@on_postgresql
@pytest.mark.django_db
def test_without_a_fleet_one_process_is_reckoned_with_and_the_limit_of_the_role_counts(django_jobs, no_job_types):
    django_jobs(CONCURRENCY=20)
    limit_role(28)
    assert budget_warning() is None
    limit_role(27)
    assert "may open 28 connections" in budget_warning().msg


@on_postgresql
@pytest.mark.django_db
def test_the_limit_of_the_database_counts(django_jobs, no_job_types):
    django_jobs(CONCURRENCY=20)
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_database())")
        (database,) = cursor.fetchone()
        cursor.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 28")
        assert budget_warning() is None
        cursor.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 27")
    assert "allows 27" in budget_warning().msg


@on_postgresql
@pytest.mark.django_db
def test_each_machine_may_have_a_supervisor(no_job_types):
    limit_role(32)
    fleet_of(10, 10)
    assert budget_warning() is None
    fleet_of(1, host="web-2")
    assert "may open 39 connections" in budget_warning().msg


@on_postgresql
@pytest.mark.django_db
def test_slots_that_another_build_told_in_another_way_count_as_none(no_job_types):
    limit_role(1)
    fleet_of(10)
    for queues in ({}, ["default"], [{"queues": ["default"]}], [{"slots": "many"}]):
        WorkerFactory(queues=queues)
    assert "each with a connection for each slot (10 in all)" in budget_warning().msg


@on_postgresql
@pytest.mark.django_db
def test_idle_processes_of_isolated_handlers_keep_connections_too():
    limit_role(20)
    fleet_of(10, 2)
    message = budget_warning()
    assert "may open 30 connections" in message.msg
    assert "6 of idle processes of isolated handlers" in message.msg


def told(command, **options):
    """What the command says of checks, on either channel."""
    out = StringIO()
    call_command(command, stdout=out, stderr=out, **options)
    return out.getvalue()


def checked(**options):
    """Other apps may find errors in the settings of these tests."""
    return told("check", fail_level="CRITICAL", **options)


@on_postgresql
@pytest.mark.django_db
def test_a_budget_that_fits_is_told_before_a_deployment_and_at_no_other_time(no_job_types):
    fleet_of(10, 10)
    limit_role(40)
    said = checked(deploy=True, databases=["default"])
    assert "(django_jobs.I001) The workers may open 32 connections" in said
    assert "allows 40" in said
    assert "8 are left" in said
    assert "django_jobs.I001" not in checked(databases=["default"])
    assert "django_jobs.I001" not in told("migrate", plan=True, skip_checks=False)
    limit_role(30)
    said = checked(deploy=True, databases=["default"])
    assert "django_jobs.I001" not in said
    assert "(django_jobs.W005) The workers may open 32 connections" in said


@on_postgresql
@pytest.mark.django_db
def test_the_budget_can_be_checked_before_the_tables_are_there(monkeypatch):
    monkeypatch.setattr(connection.introspection, "table_names", list)
    monkeypatch.setattr(checks.Worker, "objects", None)
    assert budget_warning() is None


def test_what_connects_is_tagged_database_and_looks_only_where_it_is_told():
    for check in (checks.check_server, checks.check_budget):
        assert Tags.database in check.tags
        for databases in (None, [], ["other"]):
            assert check(app_configs=None, databases=databases) == []


def test_no_check_connects_without_being_asked():
    """Without the database mark, pytest-django refuses every connection."""
    assert connections["default"] is not None
    run_checks(tags=[checks.TAG])
    for check in (checks.check_aliases, checks.check_backend, checks.check_router):
        assert check(app_configs=None, databases=["default", "other"]) == []


SCRIPT = """
import threading
import django
django.setup()
from django.core.checks import run_checks
from django.db import connections
assert run_checks(tags=["django_jobs"]) == []
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
assert all(c.connection is None for c in connections.all(initialized_only=True))
"""


@pytest.mark.parametrize("database", ["postgresql", "sqlite"])
def test_setting_up_and_checking_starts_no_thread_and_connects_to_nothing(database, tmp_path):
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TEST_DATABASE": database,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/nowhere",
        "TEST_SQLITE_DIR": str(tmp_path / "missing"),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_reads_no_settings_and_loads_no_model():
    script = "import django_jobs.exceptions, django_jobs; import sys; assert 'django_jobs.models' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
