"""Many workers at once: every job is run by one of them and ends once."""

import json
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from django.db import transaction

from django_jobs.engines.values import BulkRow, ClaimRequest
from django_jobs.ids import uuid7
from django_jobs.models import DeadJob, Job, JobHistory

from .support import (
    FAILURE,
    buried,
    claim,
    finished,
    in_threads,
    new_job,
    own_session,
    persistent,
    rescheduled,
    retry_lost,
    settle,
    settle_until_written,
)

pytestmark = pytest.mark.django_db(transaction=True)

DRAIN = """
import json, sys, django
django.setup()
from tests.engines.test_races import drain
print(json.dumps([str(job_id) for job_id in drain(sys.argv[1])]))
"""


@pytest.fixture
def jobs(statements, connection):
    def jobs(count):
        rows = [BulkRow(uuid7(), "{}") for _ in range(count)]
        with transaction.atomic():
            statements.enqueue_many(connection, new_job(), rows, keyed=False)
        return {row.id for row in rows}

    return jobs


def drain(worker, batch=37):
    """The ids of the jobs that this worker ran."""
    ran = []
    with own_session(worker) as session:
        outcomes = []
        while True:
            tick = persistent(session.tick, outcomes, [ClaimRequest(queues=("default",), limit=batch)])
            assert not tick.lost
            (claimed,) = tick.jobs
            ran += [job.id for job in claimed]
            outcomes = [*tick.busy, *map(finished, claimed)]
            if not outcomes:
                return ran


def test_threads_with_their_own_sessions_never_run_a_job_twice(jobs):
    expected = jobs(4000)
    ran = []
    in_threads(lambda number: ran.extend(drain(f"w-{number}")), 4)
    assert len(ran) == len(expected)
    assert set(ran) == expected
    assert Counter(JobHistory.objects.values_list("job_id", flat=True)) == Counter(expected)


def test_processes_never_run_a_job_twice(jobs):
    expected = jobs(6000)
    commands = [[sys.executable, "-c", DRAIN, f"w-{number}"] for number in range(3)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    ran = [job_id for worker in workers for job_id in json.loads(worker.communicate()[0])]
    assert len(ran) == len(set(ran)) == len(expected)
    assert JobHistory.objects.count() == len(expected)


def test_each_run_of_a_job_has_a_token_of_its_own(jobs):
    jobs(200)
    tokens = []

    def work(number):
        with own_session(f"w-{number}") as session:
            for _ in range(20):
                claimed = persistent(claim, session, 10)
                tokens.extend(job.token for job in claimed)
                settle_until_written(session, *(rescheduled(job) for job in claimed))
                persistent(session.stage)

    in_threads(work, 3)
    assert len(tokens) == len(set(tokens)) > 200


def test_a_tick_that_settles_and_renewals_of_the_same_runs_do_not_disturb_each_other(jobs):
    """A row that was renewed after the settling took its snapshot is followed to its newest version."""
    expected = jobs(600)
    running = {}
    over = []

    def work():
        try:
            with own_session("w") as session:
                while claimed := persistent(claim, session, 20):
                    running.update({job.id: job.token for job in claimed})
                    settle_until_written(session, *map(finished, claimed))
                    for job in claimed:
                        del running[job.id]
        finally:
            over.append(True)

    def renew():
        with own_session("w") as session:
            while not over:
                persistent(session.renew, dict(running.copy()))

    in_threads(lambda number: (work, renew)[number](), 2)
    assert set(JobHistory.objects.values_list("job_id", flat=True)) == expected
    assert JobHistory.objects.count() == len(expected)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_every_job_ends_exactly_once(jobs, seed):
    """Runs succeed, fail, are snoozed, buried, cancelled or simply forgotten, while others stage and rescue."""
    expected = jobs(250)
    random = Random(seed)

    def work(number):
        with own_session(f"w-{number}", lease=timedelta(0)) as session:
            while Job.objects.exists():
                for job in persistent(claim, session, random.randint(1, 20)):
                    endings = [finished, finished, rescheduled, buried, None, "cancel"]
                    match random.choice(endings):
                        case None:
                            continue
                        case "cancel":
                            settle_one(session, rescheduled(job, failure=FAILURE, why="snoozed"))
                        case ending:
                            settle_one(session, ending(job))

    def settle_one(session, outcome):
        while persistent(settle, session, outcome).busy:
            pass

    def tend(number):
        with own_session("tender", lease=timedelta(0)) as session:
            while Job.objects.exists():
                persistent(session.rescue, retry_lost)
                persistent(session.stage)

    in_threads(lambda number: (work if number else tend)(number), 4)
    ended = Counter(JobHistory.objects.values_list("job_id", flat=True))
    ended += Counter(DeadJob.objects.values_list("id", flat=True))
    assert ended == Counter(expected)
