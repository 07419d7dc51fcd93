"""Why is this job not running? Every cause is named."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs import cancel, discard_dead, explain, pause, retry_dead
from django_jobs.exceptions import JobNotFound
from django_jobs.ids import uuid7
from django_jobs.models import DeadJob, Job
from django_jobs.operations import explain as explain_module
from tests.factories import DeadJobFactory, JobFactory, JobHistoryFactory, QueueFactory, WorkerFactory
from tests.operations.handlers import note
from tests.operations.support import bury, claim, committing, fail, finish, session

pytestmark = committing


@pytest.fixture(autouse=True)
def worker(transactional_db):
    return WorkerFactory(queues=[{"queues": ["default", "urgent"], "slots": 10}, {"queues": ["bulk"], "slots": 2}])


def codes(job_id):
    return [reason.code for reason in explain(job_id)]


def the(job_id, code):
    (reason,) = [reason for reason in explain(job_id) if reason.code == code]
    return reason


def ahead(**span):
    return timezone.now() + timedelta(**span)


def test_nothing_is_in_the_way():
    job = note.enqueue(text="a")
    assert codes(job.id) == codes(str(job.id)) == ["next"]


def test_it_is_scheduled():
    job = note.using(delay=timedelta(hours=3)).enqueue()
    reason = the(job.id, "scheduled")
    assert reason.detail["run_at"] == Job.objects.get().run_at
    assert f"{reason.detail['run_at']:%Y-%m-%d %H:%M}" in reason.sentence


def test_it_waits_for_its_next_attempt():
    job = note.enqueue()
    fail(delay=timedelta(hours=1))
    reason = the(job.id, "retry_delay")
    assert (reason.detail["attempts"], reason.detail["last_error"]) == (1, "no such invoice")
    assert "no such invoice" in reason.sentence


def test_it_is_due_and_will_be_staged():
    assert "due" in codes(JobFactory(due=True, type="operations.note").id)


def test_its_queue_is_paused():
    job = note.enqueue()
    pause("default")
    assert codes(job.id) == ["queue_paused"]
    assert the(job.id, "queue_paused").detail["until"] is None
    until = ahead(hours=1)
    pause("default", until=until)
    assert the(job.id, "queue_paused").detail["until"] == until


def test_a_pause_that_is_over_is_no_reason():
    QueueFactory(paused=True, resume_at=timezone.now() - timedelta(seconds=1))
    assert codes(note.enqueue().id) == ["next"]


@pytest.mark.parametrize(
    "gone",
    [
        {"stopped_at": timezone.now()},
        {"last_seen_at": timezone.now() - timedelta(minutes=5)},
        {"queues": [{"queues": ["bulk"], "slots": 1}]},
    ],
    ids=lambda gone: next(iter(gone)),
)
def test_no_worker_serves_its_queue(worker, gone):
    for name, value in gone.items():
        setattr(worker, name, value)
    worker.save()
    reason = the(note.enqueue().id, "no_worker")
    assert "runjobworker --queues default" in reason.sentence
    assert reason.detail == {"queue": "default", "declared": True}


def test_its_queue_is_not_declared_any_more():
    reason = the(JobFactory(queue="old", type="operations.note").id, "no_worker")
    assert reason.detail["declared"] is False
    assert "DJANGO_JOBS" in reason.sentence


def test_this_build_does_not_know_its_type():
    assert codes(JobFactory(type="not_deployed").id) == ["unknown_type"]


def test_its_payload_does_not_fit_this_build():
    job = JobFactory(type="operations.note", payload={"number": "seven"})
    reason = the(job.id, "bad_payload")
    assert "number" in reason.sentence


def test_no_worker_could_take_it():
    job = JobFactory(scheduled=True, type="operations.note", untaken_since=timezone.now())
    assert codes(job.id) == ["untaken"]


def test_a_worker_has_it():
    job = note.enqueue()
    with session("worker-7") as opened:
        claim(opened)
        reason = the(job.id, "running")
        assert codes(job.id) == ["running"]
        assert (reason.detail["worker"], reason.detail["attempt"]) == ("worker-7", 1)
        cancel(job.id)
        assert codes(job.id) == ["cancel_requested", "running"]


def test_its_worker_is_silent():
    job = JobFactory(lapsed=True, type="operations.note")
    assert codes(job.id) == ["lease_ran_out"]
    assert the(job.id, "lease_ran_out").detail["worker"] == "another-worker"


def test_it_is_a_suspect_and_waits_its_turn():
    JobFactory(type="operations.note", lost_runs=1)
    job = JobFactory(type="operations.note", lost_runs=2)
    assert codes(job.id) == ["suspect", "jobs_ahead"]
    assert the(job.id, "suspect").detail == {"lost_runs": 2}


def test_jobs_are_in_front_of_it():
    note.using(priority=5).enqueue()
    note.using(queue="urgent").enqueue()
    note.enqueue()
    job = note.enqueue()
    note.enqueue()
    note.using(priority=-1).enqueue()
    reason = the(job.id, "jobs_ahead")
    assert reason.detail == {"count": 2, "at_least": False}
    assert reason.sentence == "2 jobs of its queue are in front of it."


def test_of_very_many_in_front_only_so_many_are_counted(monkeypatch):
    monkeypatch.setattr(explain_module, "MOST_COUNTED", 5)
    note.enqueue_many([{}] * 9)
    reason = the(note.enqueue().id, "jobs_ahead")
    assert reason.detail == {"count": 5, "at_least": True}
    assert "5 or more" in reason.sentence


def test_it_is_dead():
    job = note.enqueue()
    bury()
    reason = the(job.id, "dead")
    assert (reason.detail["reason"], codes(job.id)) == ("exhausted", ["dead"])


def test_it_is_finished():
    job = note.enqueue()
    finish()
    assert the(job.id, "finished").detail["status"] == "succeeded"
    dead = DeadJobFactory()
    discard_dead(dead.id)
    assert the(dead.id, "finished").detail["status"] == "discarded"


def test_it_was_given_fresh_attempts_while_we_looked(monkeypatch):
    job = note.enqueue()
    bury()
    dead = explain_module.get_job

    def retried_meanwhile(job_id):
        info = dead(job_id)
        if DeadJob.objects.exists():
            retry_dead(job_id)
            return dead(job_id)
        return info

    monkeypatch.setattr(explain_module, "get_job", retried_meanwhile)
    assert codes(job.id) == ["next"]


def test_several_reasons_are_all_named():
    job = JobFactory(scheduled=True, type="not_deployed", queue="old")
    QueueFactory(name="old", paused=True)
    assert codes(job.id) == ["scheduled", "queue_paused", "no_worker", "unknown_type"]


@pytest.mark.parametrize("unknown", [uuid7(), "not an id"], ids=["id", "text"])
def test_what_is_no_job_is_not_found(unknown):
    with pytest.raises(JobNotFound):
        explain(unknown)


def test_a_job_whose_row_holds_anything_is_explained():
    for payload in ([], "text", 1, {"a": "x" * 100_000}):
        assert explain(JobFactory(type="operations.note", payload=payload).id)
    assert explain(JobHistoryFactory(status="cancelled").job_id)
