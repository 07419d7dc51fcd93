"""What the engine tests share: both engines pass the same tests, except for what only one of them has."""

import os
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

import psycopg
from django.db import connections, transaction
from django.db.models import F

from django_jobs import engines
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.engines.values import ClaimRequest, ExpiredLease, NewJob
from django_jobs.failure import Failure
from django_jobs.ids import uuid7
from django_jobs.models import DeadJob, Job, JobHistory
from django_jobs.outcomes import Buried, Finished, Rescheduled
from tests.app.models import Note

VENDOR = os.environ["TEST_DATABASE"]

FAILURE = Failure(error_type="ValueError", message="no such invoice\nat all", traceback="Traceback …")


def new_job(**changes):
    job = NewJob(id=uuid7(), queue="default", type="noop", payload="{}", priority=0, tenant="", max_attempts=5)
    return job._replace(**changes)


def claim(session, limit=10, queues=("default",), suspects=1):
    (jobs,) = session.tick([], [ClaimRequest(queues=queues, limit=limit, suspects=suspects)]).jobs
    return jobs


def claim_one(session, **options):
    (job,) = claim(session, limit=1, **options)
    return job


def settle(session, *outcomes):
    return session.tick(outcomes, [])


def settle_until_written(session, *outcomes):
    """As a worker does beside others: a claimer with an older snapshot may hold one of our rows for a moment."""
    while outcomes:
        tick = persistent(session.tick, outcomes, [])
        assert not tick.lost
        outcomes = tick.busy


def persistent(call, *arguments):
    """What a worker does when the engine is not available: call again."""
    while True:
        try:
            return call(*arguments)
        except EngineUnavailable:
            continue


def finished(job, **values):
    return Finished(job_id=job.id, token=job.token, **values)


def rescheduled(job, delay=timedelta(0), **values):
    return Rescheduled(job_id=job.id, token=job.token, delay=delay, **values)


def buried(job, **values):
    defaults = {"reason": "exhausted", "failure": FAILURE, "fingerprint": "1:0123456789abcdef"}
    return Buried(job_id=job.id, token=job.token, **defaults | values)


def retry_lost(lease: ExpiredLease):
    """The judge of most tests: every lost run is retried at once."""
    return Rescheduled(job_id=lease.job_id, token=lease.token, delay=timedelta(0), failure=FAILURE, why="lost")


def stored(job):
    return Job.objects.get(id=job.id)


def dead(job):
    return DeadJob.objects.get(id=job.id)


def history(job):
    return JobHistory.objects.get(job_id=job.id)


def let_time_pass(by, *jobs, columns=("run_at", "locked_until")):
    """Shift what is compared with the clock into the past, instead of waiting."""
    for column in columns:
        rows = Job.objects.filter(**{f"{column}__isnull": False})
        if jobs:
            rows = rows.filter(id__in=[job.id for job in jobs])
        rows.update(**{column: F(column) - by})


def whereabouts(job_id):
    """The tables that hold the job; a job is in exactly one of them."""
    return [
        name
        for name, rows in {
            "jobs": Job.objects.filter(id=job_id),
            "dead": DeadJob.objects.filter(id=job_id),
            "history": JobHistory.objects.filter(job_id=job_id),
        }.items()
        for _ in range(rows.count())
    ]


@contextmanager
def own_session(worker="worker-1", **config):
    """A session of the calling thread."""
    session = engines.open_session(EngineConfig(alias="default", worker=worker, **config))
    try:
        yield session
    finally:
        session.close()


@contextmanager
def another_connection(**options):
    """A plain connection to the PostgreSQL of the test run."""
    parameters = connections["default"].get_connection_params()
    parameters = {
        name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if name in parameters
    }
    with psycopg.connect(**parameters, **options) as connection:
        yield connection


@contextmanager
def beside(work):
    """Run ``work()`` in a thread of its own, which must end with the block."""
    errors = []
    thread = Thread(target=_guarded, args=[errors, work])
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if errors:
        raise errors[0]


@contextmanager
def write_lock_held():
    """Another connection is in the middle of a write transaction."""
    taken, release = Event(), Event()

    def hold():
        with transaction.atomic():
            Note.objects.create(text="holds the lock")
            taken.set()
            release.wait(20)

    with beside(hold):
        try:
            taken.wait(20)
            yield release
        finally:
            release.set()


def in_threads(work, count):
    """Run ``work(number)`` in so many threads; raises what the first of them raised."""
    errors = []
    threads = [Thread(target=_guarded, args=[errors, work, number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _guarded(errors, work, *arguments):
    try:
        work(*arguments)
    except BaseException as error:
        errors.append(error)
    finally:
        connections.close_all()
