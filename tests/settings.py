"""Settings of the test run. ``tests.database_plugin`` sets the environment that they read.

A database has the same name inside and outside of the tests, so that a child process with these settings and
this environment sees what the test sees.
"""

import tempfile
from pathlib import Path

import environ

env = environ.Env()

SECRET_KEY = "for-tests-only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_jobs",
    "tests.app",
]

SQLITE_DIR = Path(env.str("TEST_SQLITE_DIR", default=tempfile.gettempdir()))


def sqlite(name):
    path = str(SQLITE_DIR / f"test_{name}.sqlite3")
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            "timeout": 30,
        },
        "TEST": {"NAME": path},
    }


def postgresql():
    database = env.db_url("DATABASE_URL")
    options = database.setdefault("OPTIONS", {})
    database["HOST"] = options.pop("host", database["HOST"])
    name = f"test_{database['NAME']}"
    return database | {"NAME": name, "TEST": {"NAME": name}}


DATABASES = {
    "default": postgresql() if env.str("TEST_DATABASE", default="sqlite") == "postgresql" else sqlite("default"),
    "other": sqlite("other"),
}

DJANGO_JOBS = {"QUEUES": ["default", "urgent", "bulk"]}
