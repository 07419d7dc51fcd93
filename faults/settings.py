"""Settings of the fault kit and of all processes that it starts. ``faults.arena`` sets the environment."""

import faulthandler
import json
import signal
from typing import Any

import environ

from faults.clock import shift_clocks

env = environ.Env()

SECRET_KEY = "for-fault-tests-only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_jobs",
    "faults.app",
]


def postgresql() -> dict[str, Any]:
    database: dict[str, Any] = env.db_url("FAULTS_DATABASE")
    options = database.setdefault("OPTIONS", {})
    database["HOST"] = options.pop("host", database["HOST"])
    options.setdefault("connect_timeout", 5)  # whom a dying server accepts may never hear from it
    return database


def sqlite() -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": env.str("FAULTS_DATABASE").removeprefix("sqlite://"),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            "timeout": 10,
        },
    }


DATABASES = {"default": sqlite() if env.str("FAULTS_DATABASE").startswith("sqlite") else postgresql()}

DJANGO_JOBS = {"QUEUES": ["default"]} | json.loads(env.str("FAULTS_DJANGO_JOBS", default="{}"))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"timed": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "timed"}},
    "loggers": {"django_jobs": {"level": "INFO", "handlers": ["console"]}},
}

# The kit asks whoever does not stop where it stands.
faulthandler.register(signal.SIGUSR1)

shift_clocks(env.float("FAULTS_CLOCK_SHIFT", default=0.0))
