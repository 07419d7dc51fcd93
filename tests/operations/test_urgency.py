"""An operator's hand on a job that waits: now, or sooner than others."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobs import change_priority, run_now
from django_jobs.exceptions import InvalidOption, JobNotFound
from django_jobs.ids import uuid7
from django_jobs.models import AuditEntry, Job
from tests.factories import DeadJobFactory, JobFactory
from tests.operations.handlers import note
from tests.operations.support import claim, committing, fail, finish, on_postgresql, session, start
from tests.operations.triage import ANNA

pytestmark = committing


def test_a_scheduled_job_is_run_now():
    job = note.using(delay=timedelta(hours=3)).enqueue(text="a")
    assert run_now(job.id, actor=ANNA) == "changed"
    with session() as opened:
        assert opened.stage().staged == 1
        assert claim(opened)[0].id == job.id
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target_kind, entry.target_id) == ("run_now", "job", str(job.id))
    assert entry.before["run_at"] > entry.after["run_at"]


def test_a_job_that_waits_for_its_next_attempt_is_run_now():
    job = note.enqueue()
    fail(delay=timedelta(hours=1))
    assert run_now(str(job.id)) == "changed"
    row = Job.objects.get()
    assert row.run_at <= timezone.now()
    assert (row.attempts, len(row.errors)) == (1, 1)
    assert not AuditEntry.objects.exists()


def test_a_ready_job_is_not_changed_by_run_now():
    job = note.enqueue()
    before = Job.objects.values().get()
    assert run_now(job.id, actor=ANNA) == "unchanged"
    assert Job.objects.values().get() == before
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("status", ["pending", "scheduled"])
def test_a_job_with_a_higher_priority_goes_first(status):
    note.enqueue(text="first")
    job = note.enqueue(text="second")
    Job.objects.filter(pk=job.id).update(status=status)
    assert change_priority(job.id, 7, actor=ANNA) == "changed"
    assert change_priority(job.id, 7, actor=ANNA) == "unchanged"
    with session() as opened:
        opened.stage()
        assert claim(opened)[0].id == job.id
    entry = AuditEntry.objects.get()
    assert (entry.before, entry.after) == ({"priority": 0}, {"priority": 7})


@pytest.mark.parametrize("act", [run_now, lambda job_id, **who: change_priority(job_id, 3, **who)])
class TestTooLate:
    def test_for_a_running_job(self, act):
        job = JobFactory(processing=True)
        assert act(job.id, actor=ANNA) == "running"
        assert not AuditEntry.objects.exists()
        assert Job.objects.get().status == "processing"

    def test_for_a_dead_or_finished_job(self, act):
        note.enqueue()
        finished = finish()
        assert act(finished.id, actor=ANNA) == act(DeadJobFactory().id) == "over"
        assert not AuditEntry.objects.exists()

    def test_for_no_job(self, act):
        with pytest.raises(JobNotFound):
            act(uuid7())


@on_postgresql
def test_a_job_that_is_claimed_meanwhile_is_running():
    job = JobFactory(scheduled=True)
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).update(status="processing")
        late = start(run_now, job.id)
        assert not late.done()
    assert late.result(timeout=20) == "running"


@pytest.mark.parametrize("priority", [1.5, "3", True, None, 32768, -32769])
def test_a_priority_that_is_none_is_refused(priority):
    job = note.enqueue()
    with pytest.raises(InvalidOption, match="priority"):
        change_priority(job.id, priority)
