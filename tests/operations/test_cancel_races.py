"""Cancelling while a worker claims: the job ends cancelled or is flagged; it is never lost, and never both."""

import threading

from django_jobs import cancel, get_job
from django_jobs.models import Job, JobHistory
from django_jobs.outcomes import Finished
from tests.engines.support import in_threads
from tests.operations.handlers import note
from tests.operations.support import VENDOR, claim, committing, session

pytestmark = committing

ROUNDS = 200 if VENDOR == "postgresql" else 40


def claim_as(opened):
    from django_jobs.engines.protocol import EngineUnavailable

    while True:
        try:
            return claim(opened)
        except EngineUnavailable:
            continue


def test_a_cancellation_that_races_a_claim_is_never_lost():
    barrier = threading.Barrier(2)
    jobs = [None] * ROUNDS
    answers, claims = [], []

    def cancel_each(_):
        for number in range(ROUNDS):
            jobs[number] = note.enqueue(number=number)
            barrier.wait()
            answers.append(cancel(jobs[number].id))
            barrier.wait()

    def claim_each(_):
        with session() as opened:
            for _ in range(ROUNDS):
                barrier.wait()
                claims.append(claim_as(opened))
                barrier.wait()

    in_threads(lambda number: (cancel_each, claim_each)[number](number), 2)

    for job, answer, claimed in zip(jobs, answers, claims, strict=True):
        info = get_job(job.id)
        if claimed:
            assert (answer, info.status, info.cancel_requested) == ("requested", "processing", True)
        else:
            assert (answer, info.status) == ("cancelled", "cancelled")
    assert Job.objects.count() + JobHistory.objects.count() == ROUNDS


def test_a_cancellation_that_races_a_success_gives_one_of_the_two():
    rounds = ROUNDS // 4
    with session() as opened:
        jobs = [note.enqueue(number=number) for number in range(rounds)]
        claimed = {job.id: job for job in claim(opened, limit=rounds)}
        assert len(claimed) == rounds
    barrier = threading.Barrier(2)
    answers = {}

    def cancel_each():
        for job in jobs:
            barrier.wait()
            answers[job.id] = cancel(job.id)

    def finish_each():
        from django_jobs.engines.protocol import EngineUnavailable

        with session() as opened:
            for job in jobs:
                left = [Finished(job_id=job.id, token=claimed[job.id].token)]
                barrier.wait()
                while left:
                    try:
                        left = list(opened.tick(left, []).busy)
                    except EngineUnavailable:
                        continue

    in_threads(lambda number: (cancel_each, finish_each)[number](), 2)
    assert set(answers.values()) <= {"requested", "too_late"}
    assert {get_job(job.id).status for job in jobs} == {"succeeded"}


def test_two_cancellations_at_once_leave_one_record():
    jobs = [note.enqueue(number=number) for number in range(20)]
    barrier = threading.Barrier(2)
    answers = []

    def cancel_each(_):
        for job in jobs:
            barrier.wait()
            answers.append(cancel(job.id))

    in_threads(cancel_each, 2)
    assert set(answers) == {"cancelled"}
    assert JobHistory.objects.count() == len(jobs)
    assert not Job.objects.exists()
