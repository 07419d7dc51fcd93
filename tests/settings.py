"""Settings of the test run. ``tests.database_plugin`` sets the environment that they read.

A database has the same name inside and outside of the tests, so that a child process with these settings and
this environment sees what the test sees.
"""

import tempfile
from pathlib import Path

import django
import environ

env = environ.Env()

SECRET_KEY = "for-tests-only"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real ones are slow on purpose
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_jobs",
    "tests.app",
]

MIDDLEWARE = [
    "tests.middleware.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "tests.urls"
STATIC_URL = "static/"

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

if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
