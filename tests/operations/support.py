"""What the operations' tests share."""

import os
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from threading import Thread

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from django_jobs import engines
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.values import ClaimRequest
from django_jobs.failure import Failure
from django_jobs.models import IdempotencyKey, Job
from django_jobs.outcomes import Buried, Finished, Rescheduled

VENDOR = os.environ["TEST_DATABASE"]
on_postgresql = pytest.mark.skipif(VENDOR != "postgresql", reason="PostgreSQL only")
on_sqlite = pytest.mark.skipif(VENDOR != "sqlite", reason="SQLite only")

# Without a limit to the apps, each test's end makes the content types and permissions anew.
committing = pytest.mark.django_db(transaction=True, available_apps=["django_jobs", "tests.app"])

FAILURE = Failure(error_type="ValueError", message="no such invoice", traceback="Traceback …")


def texts(using="default"):
    """The payload texts of the jobs there are, in the order of their enqueueing."""
    return [job.payload.get("text") for job in Job.objects.using(using).order_by("id")]


def start(function, *args):
    """Run in a thread, on connections of its own. Returns a future."""
    future = Future()

    def run():
        try:
            future.set_result(function(*args))
        except BaseException as error:
            future.set_exception(error)
        finally:
            connections.close_all()

    Thread(target=run).start()
    return future


def seen_elsewhere(query=Job.objects.count):
    """What another connection sees now."""
    return start(query).result(timeout=20)


@contextmanager
def session(worker="worker", **config):
    opened = engines.open_session(EngineConfig(alias="default", worker=worker, **config))
    try:
        yield opened
    finally:
        opened.close()


def claim(opened, limit=1, queues=("default",)):
    (jobs,) = opened.tick([], [ClaimRequest(queues=tuple(queues), limit=limit)]).jobs
    return jobs


def run_to(outcome_of):
    """Claim the one ready job and end its run as ``outcome_of(claimed)`` says."""
    with session() as opened:
        (claimed,) = claim(opened, queues=("default", "urgent", "bulk"))
        opened.tick([outcome_of(claimed)], [])
    return claimed


def finish(**values):
    return run_to(lambda job: Finished(job_id=job.id, token=job.token, **values))


def fail(delay=timedelta(hours=1)):
    return run_to(lambda job: Rescheduled(job_id=job.id, token=job.token, delay=delay, failure=FAILURE))


def bury():
    return run_to(
        lambda job: Buried(job_id=job.id, token=job.token, reason="exhausted", failure=FAILURE, fingerprint="1:00")
    )


def expire_key(key):
    IdempotencyKey.objects.filter(key=key).update(expires_at="2020-01-01T00:00:00Z")


@contextmanager
def counting_wakes():
    """Yields a function that says how many wake-ups were sent since."""
    with CaptureQueriesContext(connection) as queries:
        yield lambda: sum("django_jobs_wake" in query["sql"] for query in queries.captured_queries)


@contextmanager
def sleeper(*queues):
    """A worker asleep on these queues, in a session of its own."""
    with session("sleeper") as opened:
        assert opened.can_listen()
        assert opened.lie_down(queues or ("default",))
        yield opened


def is_woken(opened):
    return opened.take_notification()
