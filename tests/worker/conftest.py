import logging

import pytest

import django_jobs
from django_jobs.registry import registry

# Short pauses, so that a drain takes no longer than its jobs.
QUICK = {
    "QUEUES": ["default", "urgent", "bulk"],
    "CONCURRENCY": 4,
    "RETRY": {"base": 0.02, "cap": 0.05, "floor": 0},
    "STAGE_EVERY": 0.05,
    "RESCUE_EVERY": 0.2,
    "SHUTDOWN_TIMEOUT": 10,
}


@pytest.fixture(autouse=True)
def committed_data(transactional_db):
    """Workers have connections of their own: they see what is committed."""


@pytest.fixture(autouse=True)
def configure(settings):
    """Change DJANGO_JOBS for the test: ``configure(LEASE=2)``."""

    def configure(**more):
        settings.DJANGO_JOBS = settings.DJANGO_JOBS | more

    settings.DJANGO_JOBS = QUICK
    return configure


@pytest.fixture
def job():
    """``@job`` for handlers inside a test: their types are forgotten at its end."""
    before = dict(registry._by_name)
    yield django_jobs.job
    registry._by_name = before


@pytest.fixture
def noop(job):
    """A job type whose runs do nothing."""

    @job("noop")
    def noop():
        pass

    return noop


@pytest.fixture
def run_log():
    """The records of ``django_jobs.runs``: one for each run that ended."""
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("django_jobs.runs")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)
