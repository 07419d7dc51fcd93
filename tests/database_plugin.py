"""The database of the test run, there before pytest-django reads the settings.

``TEST_DATABASE`` is ``sqlite`` or ``postgresql``; without it, PostgreSQL is taken if ``DATABASE_URL`` is one.
On PostgreSQL the tests use the server of ``DATABASE_URL``, or start their own and set ``DATABASE_URL``.
"""

import os
import shutil
import tempfile

import pytest

from tests.postgres_server import PostgresServer


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config):
    os.environ.setdefault("TEST_DATABASE", default_database())
    if "TEST_SQLITE_DIR" not in os.environ:
        provide_sqlite_folder(early_config)
    if os.environ["TEST_DATABASE"] == "postgresql" and not os.environ.get("DATABASE_URL"):
        provide_postgres_server(early_config)
    return (yield)


def pytest_report_header():
    return f"database: {os.environ['TEST_DATABASE']}"


def default_database():
    return "postgresql" if os.environ.get("DATABASE_URL", "").startswith("postgres") else "sqlite"


def provide_sqlite_folder(config):
    folder = os.environ["TEST_SQLITE_DIR"] = tempfile.mkdtemp(prefix="django-jobs-sqlite-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def provide_postgres_server(config):
    server = PostgresServer()
    try:
        server.start()
    except RuntimeError as error:
        raise pytest.UsageError(str(error)) from error
    config.add_cleanup(server.stop)
    os.environ["DATABASE_URL"] = server.url("django_jobs")
