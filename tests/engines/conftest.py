import pytest
from django.db import connections

from django_jobs import engines
from django_jobs.engines.config import EngineConfig

from .support import VENDOR

# Whatever has two implementations has one suite; these files are about what only one of them has.
collect_ignore_glob = ["test_postgresql_*"] if VENDOR == "sqlite" else ["test_sqlite*"]


@pytest.fixture
def statements():
    return engines.statements("default")


@pytest.fixture
def connection():
    return connections["default"]


@pytest.fixture
def open_session(transactional_db):
    sessions = []

    def open_session(worker="worker-1", **config):
        sessions.append(engines.open_session(EngineConfig(alias="default", worker=worker, **config)))
        return sessions[-1]

    yield open_session
    for session in reversed(sessions):
        session.close()


@pytest.fixture
def session(open_session):
    return open_session()
