"""``freejobs``: an operator knows that a process is gone, and does not wait for its leases."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_jobs import get_job
from django_jobs.maintenance.reporter import Reporter
from django_jobs.models import Job, JobCount
from tests.factories import JobFactory, WorkerFactory

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(minutes=5)


def free(*arguments):
    out = StringIO()
    call_command("freejobs", *arguments, "--format", "json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def gone():
    """A worker that was not seen for a while, with two running jobs."""
    worker = WorkerFactory(id="web-1-4711", host="web-1", last_seen_at=timezone.now() - LONG_AGO)
    worker.jobs = JobFactory.create_batch(2, processing=True, locked_by=worker.id)
    return worker


@pytest.fixture
def lively():
    worker = WorkerFactory(id="web-2-815", host="web-2", last_seen_at=timezone.now())
    worker.jobs = [JobFactory(processing=True, locked_by=worker.id)]
    return worker


def statuses(worker):
    return {Job.objects.get(pk=job.pk).status for job in worker.jobs}


def test_without_arguments_it_lists_who_holds_jobs_and_frees_nothing(gone, lively):
    (first, second) = free()
    assert (first["worker"], first["jobs"], first["lively"]) == (gone.id, 2, False)
    assert 300 <= first["seen"] < 400
    assert (second["worker"], second["lively"]) == (lively.id, True)
    assert statuses(gone) == statuses(lively) == {"processing"}


def test_the_runs_of_a_dead_worker_are_lost_at_once_with_the_cause_on_record(gone, lively):
    (row,) = free(gone.id)
    assert row["freed"] == 2
    assert (statuses(gone), statuses(lively)) == ({"scheduled"}, {"processing"})
    info = get_job(gone.jobs[0].pk)
    assert info.attempts == 1
    assert "freed by an operator (web-1-4711)" in info.errors[0]["message"]


def test_freed_runs_are_counted_as_lost_in_rows_of_each_call_s_own(gone, lively):
    for worker in (gone, lively):
        free(worker.id, "--force")
    counted = JobCount.objects.values_list("queue", "type", "outcome", "count")
    assert sorted(counted) == [("default", "noop", "lost", 1), ("default", "noop", "lost", 2)]


def test_a_whole_machine_can_be_freed(gone, lively):
    assert [row["worker"] for row in free("--host", "web-1")] == [gone.id]
    assert (statuses(gone), statuses(lively)) == ({"scheduled"}, {"processing"})


def test_a_dry_run_changes_nothing(gone):
    (row,) = free(gone.id, "--dry-run")
    assert (row["jobs"], row["freed"]) == (2, 0)
    assert statuses(gone) == {"processing"}


def test_a_worker_that_was_seen_a_moment_ago_is_refused_and_so_are_all_others_with_it(gone, lively):
    with pytest.raises(CommandError, match=r"Seen in the last minute: web-2-815.*--force"):
        free(gone.id, lively.id)
    assert statuses(gone) == statuses(lively) == {"processing"}


def test_an_idle_looking_worker_is_refused_for_as_long_as_it_may_say_nothing(lively):
    """A long run changes nothing that the process would have to report."""
    lively.last_seen_at = timezone.now() - Reporter.rest - Reporter.pause
    lively.save()
    with pytest.raises(CommandError, match="--force"):
        free(lively.id)


def test_force_frees_it_all_the_same(lively):
    assert free(lively.id, "--force")[0]["freed"] == 1
    assert statuses(lively) == {"scheduled"}


def test_a_worker_that_stopped_by_itself_is_not_lively(lively):
    lively.stopped_at = timezone.now()
    lively.save()
    assert free(lively.id)[0]["freed"] == 1


def test_a_worker_without_a_row_can_be_freed():
    JobFactory(processing=True, locked_by="unknown")
    assert free("unknown")[0]["freed"] == 1


def test_a_name_that_holds_nothing_is_refused(gone):
    with pytest.raises(CommandError, match="These hold no jobs: web-9"):
        free("web-9", gone.id)
    assert statuses(gone) == {"processing"}


def test_the_text_says_who_and_how_many(gone):
    out = StringIO()
    call_command("freejobs", gone.id, stdout=out)
    assert "web-1-4711: 2 jobs, seen 300 s ago, 2 freed" in out.getvalue()
    out = StringIO()
    call_command("freejobs", stdout=out)
    assert "Nobody holds jobs." in out.getvalue()
