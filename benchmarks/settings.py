"""Settings of the benchmarks and of the worker processes they start. ``benchmarks.databases`` sets the environment.

``small`` is a second PostgreSQL database that stays nearly empty. A worker process knows one alias, as in most
projects: the database that ``BENCHMARK_ONLY`` names.
"""

from typing import Any

import environ

env = environ.Env()

SECRET_KEY = "for-benchmarks-only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_jobs",
    "benchmarks.app",
]


def postgresql(variable: str) -> dict[str, Any]:
    database: dict[str, Any] = env.db_url(variable)
    options = database.setdefault("OPTIONS", {})
    database["HOST"] = options.pop("host", database["HOST"])
    return database


def sqlite(path: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            "timeout": 30,
        },
    }


ALL = {
    "default": postgresql("BENCHMARK_POSTGRESQL"),
    "small": postgresql("BENCHMARK_POSTGRESQL_SMALL"),
    "sqlite": sqlite(env.str("BENCHMARK_SQLITE")),
}
ONLY = env.str("BENCHMARK_ONLY", default="")
DATABASES = {"default": ALL[ONLY]} if ONLY else ALL

DJANGO_JOBS = {"QUEUES": ["default", "other"]}

# The admin, where its pages are measured; a worker process does without.
if not ONLY:
    INSTALLED_APPS += [
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.staticfiles",
        "django.contrib.admin",
    ]
    ALLOWED_HOSTS = ["testserver"]
    ROOT_URLCONF = "benchmarks.urls"
    STATIC_URL = "static/"
    MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
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
