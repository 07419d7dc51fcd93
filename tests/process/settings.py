"""The settings of a worker process that a test starts: ``TEST_DJANGO_JOBS`` is JSON that is put over DJANGO_JOBS."""

import json
import os
import sys

from tests.settings import *  # noqa: F403
from tests.settings import DJANGO_JOBS

DJANGO_JOBS = DJANGO_JOBS | json.loads(os.environ.get("TEST_DJANGO_JOBS", "{}"))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"timed": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "timed"}},
    "loggers": {"django_jobs": {"level": "INFO", "handlers": ["console"]}},
}

if os.environ.get("TEST_DIE_AT_START") and any(part.startswith("--supervised") for part in sys.argv):
    os._exit(5)
