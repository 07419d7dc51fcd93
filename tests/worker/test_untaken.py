"""Jobs that this build cannot take go back untouched, for another build to run."""

from datetime import timedelta

from django.utils import timezone

from django_jobs import enqueue, get_job
from django_jobs.models import DeadJob, Job
from django_jobs.registry import registry
from tests.factories import JobFactory
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


def forget(name):
    del registry._by_name[name]


def test_a_job_of_an_unknown_type_goes_back_with_its_attempt_refunded(job, run_log):
    unknown = JobFactory(type="of_another_build")
    drain(horizon=0)
    row = Job.objects.get(pk=unknown.id)
    assert (row.status, row.attempts) == ("scheduled", 0)
    assert timedelta(seconds=10) < row.run_at - timezone.now() < timedelta(seconds=50)
    assert row.untaken_since is not None
    assert (row.last_error, row.errors) == ("", [])
    assert [record.status for record in run_log] == ["untaken"]


def test_an_unknown_type_delays_nobody_else(job):
    @job("known")
    def known():
        pass

    for _ in range(100):
        JobFactory(type="of_another_build", priority=9)
    enqueued = known.enqueue()
    drain(horizon=0)
    assert get_job(enqueued.id).status == "succeeded"
    assert set(Job.objects.values_list("status", "attempts")) == {("scheduled", 0)}


def test_once_the_type_is_there_it_runs(job):
    unknown = JobFactory(type="late_type", max_attempts=1)
    drain(horizon=0)

    @job("late_type")
    def late_type():
        return "at last"

    Job.objects.update(run_at=timezone.now())
    drain()
    info = get_job(unknown.id)
    assert (info.status, info.attempts, info.result) == ("succeeded", 1, "at last")


def test_after_its_patience_a_job_without_a_handler_is_buried(job):
    unknown = JobFactory(type="never", untaken_since=timezone.now() - timedelta(hours=25))
    patient = JobFactory(type="never", untaken_since=timezone.now() - timedelta(hours=23))
    drain(horizon=0)
    dead = DeadJob.objects.get()
    assert (dead.id, dead.reason) == (unknown.id, "no_handler")
    row = Job.objects.get()
    assert row.id == patient.id
    assert timezone.now() - row.untaken_since > timedelta(hours=22)


def test_a_payload_of_a_newer_signature_waits_for_the_newer_build(job):
    @job("changing")
    def changing(n: int, added: str):
        return added

    enqueued = enqueue("changing", {"n": 1, "added": "new"})
    forget("changing")

    @job("changing")
    def changing_old(n: int):
        return "old"

    drain(horizon=0)
    info = get_job(enqueued.id)
    assert (info.status, info.attempts) == ("scheduled", 0)
    forget("changing")
    registry._by_name["changing"] = changing.job_type
    Job.objects.update(run_at=timezone.now())
    drain()
    assert get_job(enqueued.id).result == "new"


def test_a_misfit_payload_is_buried_as_such_after_its_patience(job):
    @job("strict")
    def strict(n: int):
        pass

    JobFactory(type="strict", payload={"n": "text"}, untaken_since=timezone.now() - timedelta(hours=25))
    JobFactory(type="strict", payload={})
    drain(horizon=0)
    assert DeadJob.objects.get().reason == "bad_payload"
    assert Job.objects.get().attempts == 0


def test_old_and_new_builds_run_side_by_side(job):
    @job("shared_type")
    def shared_type():
        return "done"

    for _ in range(10):
        JobFactory(type="only_new")
    enqueued = [shared_type.enqueue() for _ in range(10)]
    with running_worker(), running_worker():
        wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in enqueued))
        wait_for(lambda: not Job.objects.exclude(status="scheduled").exists())
    assert set(Job.objects.values_list("type", "attempts")) == {("only_new", 0)}
