"""Retrying and discarding many dead jobs: each is moved at most once, and nothing else is."""

from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from django_jobs import (
    DeadFilter,
    abort_bulk,
    confirm_bulk,
    discard_dead,
    get_bulk,
    preview_bulk,
    retry_dead,
    start_bulk,
)
from django_jobs.exceptions import BulkNotFound, JobNotFound
from django_jobs.ids import uuid7
from django_jobs.models import AuditEntry, BulkOperation, DeadJob, Job, JobHistory
from django_jobs.operations import bulk_step as step_module
from django_jobs.operations.bulk_step import bulk_step, running_bulks
from tests.engines.support import in_threads
from tests.operations.support import committing, on_postgresql, start
from tests.operations.triage import ANNA, ago, carry_out, die, no_changes, retry_all, whereabouts

pytestmark = [committing, pytest.mark.usefixtures("no_changes")]
__all__ = ["no_changes"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(step_module, "BATCH", 10)


def test_a_bulk_retry_moves_every_job_that_is_meant_in_batches():
    die(35)
    info = retry_all()
    assert (info.state, info.total, info.done, info.fraction) == ("running", None, 0, 0.0)
    assert whereabouts()["Job"] == 0
    assert bulk_step(info.id)
    assert (get_bulk(info.id).total, get_bulk(info.id).done) == (35, 10)
    assert 0.2 < get_bulk(info.id).fraction < 0.4
    row = carry_out(info)
    assert (row.state, row.done, row.skipped, row.error) == ("done", 35, 0, "")
    assert whereabouts() == {"DeadJob": 0, "Job": 35, "JobHistory": 0}
    assert get_bulk(info.id).fraction == 1.0


def test_retried_jobs_keep_their_ids_and_errors_and_queue_as_new_ones():
    (dead,) = die(tenant="acme", priority=3, queue="bulk", errors=[{"attempt": 5, "message": "no"}])
    carry_out(retry_all())
    job = Job.objects.get()
    assert (job.id, job.errors, job.attempts) == (dead.id, dead.errors, 0)
    assert (job.status, job.queue, job.tenant, job.priority) == ("pending", "bulk", "acme", 3)


def test_a_bulk_discard_makes_history_of_them():
    die(25)
    row = carry_out(start_bulk("discard", DeadFilter(), actor=ANNA))
    assert (row.state, row.done) == ("done", 25)
    assert set(JobHistory.objects.values_list("status", flat=True)) == {"discarded"}
    assert whereabouts() == {"DeadJob": 0, "Job": 0, "JobHistory": 25}


MEANT = [
    (DeadFilter(type="a"), {"type": "a"}),
    (DeadFilter(type="a", fingerprint="1:aa"), {"type": "a", "fingerprint": "1:aa"}),
    (DeadFilter(queue="urgent"), {"queue": "urgent"}),
    (DeadFilter(tenant=""), {"tenant": ""}),
    (DeadFilter(reason="timeout"), {"reason": "timeout"}),
    (DeadFilter(error="Route TO"), {"error_summary": "No route to host"}),
    (DeadFilter(failed_from=ago(hours=2)), {"failed_at": ago(hours=1)}),
    (DeadFilter(failed_before=ago(hours=48)), {"failed_at": ago(hours=50)}),
    (DeadFilter(type="a", tenant="b", reason="timeout"), {"type": "a", "tenant": "b", "reason": "timeout"}),
]


@pytest.mark.parametrize(("filter", "fields"), MEANT, ids=str)
def test_only_what_the_filter_means_is_moved(filter, fields):
    others = {"tenant": "other", "error_summary": "something else", "failed_at": ago(hours=24)}
    die(13, **others)
    die(12, **others | fields)
    die(13, **others)
    assert preview_bulk("retry", filter).count == 12
    row = carry_out(retry_all(filter))
    assert (row.total, row.done, row.skipped) == (12, 12, 0)
    assert whereabouts() == {"DeadJob": 26, "Job": 12, "JobHistory": 0}
    assert DeadFilter.from_json(row.filter) == filter


def test_a_selection_made_by_hand_is_moved():
    jobs = die(30)
    chosen = tuple(job.id for job in jobs[::2])
    row = carry_out(retry_all(DeadFilter(ids=chosen)))
    assert row.done == 15
    assert set(Job.objects.values_list("id", flat=True)) == set(chosen)


def test_a_selection_may_be_a_list_of_texts_and_may_be_empty():
    jobs = die(3)
    assert carry_out(retry_all(DeadFilter(ids=[]))).done == 0
    assert carry_out(retry_all(DeadFilter(ids=[str(jobs[1].id)]))).done == 1
    with pytest.raises(JobNotFound):
        DeadFilter(ids=["x"])


def test_a_job_that_dies_later_is_not_touched():
    die(5)
    info = retry_all()
    (late,) = die()
    assert carry_out(info).done == 5
    assert list(DeadJob.objects.values_list("id", flat=True)) == [late.id]


def test_a_retried_job_that_dies_again_is_not_retried_again(monkeypatch):
    monkeypatch.setattr(step_module, "BATCH", 2)
    die(3)
    info = retry_all()
    bulk_step(info.id)
    Job.objects.all().delete()
    again = die(2)
    assert carry_out(info).done == 3
    assert set(DeadJob.objects.values_list("id", flat=True)) == {job.id for job in again}


def test_jobs_that_others_moved_meanwhile_are_skipped():
    jobs = die(30)
    info = retry_all()
    bulk_step(info.id)
    retry_dead(jobs[15].id)
    discard_dead([job.id for job in jobs[20:25]])
    row = carry_out(info)
    assert (row.total, row.done, row.skipped) == (30, 24, 6)
    assert whereabouts() == {"DeadJob": 0, "Job": 25, "JobHistory": 5}


def test_two_operations_on_the_same_jobs_move_each_once():
    die(40)
    first, second = retry_all(), start_bulk("discard", DeadFilter(), actor=ANNA)
    for _ in range(10):
        bulk_step(first.id)
        bulk_step(second.id)
    rows = [get_bulk(first.id), get_bulk(second.id)]
    assert sum(row.done for row in rows) == 40
    assert [row.done + row.skipped for row in rows] == [row.total for row in rows]
    found = whereabouts()
    assert (found["Job"], found["JobHistory"]) == (rows[0].done, rows[1].done)


@on_postgresql
def test_any_number_of_processes_carry_an_operation_out_together():
    die(200)
    info = retry_all()
    steps = [0] * 4

    def work(number):
        while get_bulk(info.id).state == "running":
            steps[number] += bulk_step(info.id)

    in_threads(work, 4)
    row = get_bulk(info.id)
    assert (row.done, row.skipped, row.state) == (200, 0, "done")
    assert sum(steps) == 20
    assert AuditEntry.objects.filter(action="bulk_retry").count() == 1


@on_postgresql
def test_a_locked_job_is_skipped_and_stays_dead():
    jobs = die(12)
    info = retry_all()
    with transaction.atomic():
        DeadJob.objects.select_for_update().get(id=jobs[3].id)
        row = start(carry_out, info).result(timeout=20)
    assert (row.done, row.skipped, row.state) == (11, 1, "done")
    assert list(DeadJob.objects.values_list("id", flat=True)) == [jobs[3].id]


def test_a_batch_that_is_cut_off_is_done_again_and_nothing_twice(monkeypatch):
    die(25)
    info = retry_all()
    bulk_step(info.id)

    def crash(self, **options):
        raise RuntimeError("pulled the plug")

    with monkeypatch.context() as patch:
        patch.setattr(step_module._Step, "_settle", crash)
        with pytest.raises(RuntimeError):
            bulk_step(info.id)
    assert whereabouts() == {"DeadJob": 15, "Job": 10, "JobHistory": 0}
    assert "pulled the plug" in get_bulk(info.id).error
    row = carry_out(info)
    assert (row.done, row.skipped, row.error) == (25, 0, "")


def test_a_canary_goes_first_and_the_rest_waits_to_be_confirmed():
    jobs = die(30)
    info = retry_all(canary=3)
    row = carry_out(info)
    assert (row.state, row.done) == ("canary", 3)
    assert running_bulks() == []
    canary = get_bulk(info.id)
    assert set(canary.canary_ids) == {job.id for job in jobs[:3]}
    assert canary.canary_statuses() == {"failed_retrying": 3} or canary.canary_statuses() == {"pending": 3}
    assert not bulk_step(info.id)
    assert confirm_bulk(info.id, actor=ANNA)
    row = carry_out(info)
    assert (row.state, row.done, len(row.canary_ids)) == ("done", 30, 3)


def test_how_the_canary_ended_is_told():
    jobs = die(12, last_error="")
    info = retry_all(canary=2)
    carry_out(info)
    Job.objects.filter(id=jobs[0].id).delete()
    JobHistory.objects.create(job_id=jobs[0].id, type="noop", queue="q", status="succeeded", enqueued_at=ago(hours=1))
    assert get_bulk(info.id).canary_statuses() == {"succeeded": 1, "pending": 1}


def test_a_canary_of_a_few_among_many_others_is_complete():
    die(25, tenant="other")
    die(5, tenant="acme")
    die(25, tenant="other")
    info = retry_all(DeadFilter(tenant="acme"), canary=2)
    assert (carry_out(info).state, get_bulk(info.id).done) == ("canary", 2)
    confirm_bulk(info.id, actor=ANNA)
    assert (carry_out(info).state, get_bulk(info.id).done) == ("done", 5)


def test_a_canary_of_less_than_a_batch_leaves_the_rest_waiting():
    die(5)
    info = retry_all(canary=2)
    assert (carry_out(info).state, whereabouts()["DeadJob"]) == ("canary", 3)


def test_a_canary_as_large_as_the_whole_is_the_whole():
    die(3)
    assert carry_out(retry_all(canary=3)).state == "done"


def test_aborting_leaves_the_rest_as_it_is():
    die(30)
    info = retry_all()
    bulk_step(info.id)
    assert abort_bulk(info.id, actor=ANNA)
    assert not bulk_step(info.id)
    row = get_bulk(info.id)
    assert (row.state, row.done, row.is_over) == ("aborted", 10, True)
    assert row.finished_at is not None
    assert whereabouts() == {"DeadJob": 20, "Job": 10, "JobHistory": 0}


@pytest.mark.parametrize("decide", [confirm_bulk, abort_bulk])
def test_what_is_over_is_not_decided_again(decide):
    info = retry_all()
    carry_out(info)
    assert not decide(info.id, actor=ANNA)
    assert get_bulk(info.id).state == "done"


def test_an_unknown_operation_is_not_found():
    for act in (get_bulk, partial(confirm_bulk, actor=ANNA), partial(abort_bulk, actor=ANNA)):
        with pytest.raises(BulkNotFound):
            act(uuid7())


def elapse(info, seconds):
    """As if the spreading had begun so long ago."""
    row = BulkOperation.objects.get(pk=info.id)
    row.spread_from -= timedelta(seconds=seconds)
    row.save()


def test_a_spread_retry_moves_its_share_as_time_passes():
    die(100)
    info = retry_all(spread=timedelta(seconds=3600))
    carry_out(info)
    assert get_bulk(info.id).done <= 1
    elapse(info, 360)
    carry_out(info)
    assert 10 <= get_bulk(info.id).done <= 12
    elapse(info, 1440)
    carry_out(info)
    assert 50 <= get_bulk(info.id).done <= 52
    assert get_bulk(info.id).state == "running"
    elapse(info, 1800)
    row = carry_out(info)
    assert (row.state, row.done) == ("done", 100)


def test_a_spread_of_jobs_that_went_meanwhile_ends():
    jobs = die(20)
    info = retry_all(spread=timedelta(seconds=600))
    bulk_step(info.id)
    discard_dead([job.id for job in jobs])
    elapse(info, 600)
    row = carry_out(info)
    assert (row.state, row.done + row.skipped) == ("done", 20)


def test_nothing_to_do_is_done_at_once():
    row = carry_out(retry_all(spread=timedelta(hours=1)))
    assert (row.state, row.total, row.done) == ("done", 0, 0)


def test_every_step_of_an_operation_is_audited():
    die(12)
    info = retry_all(canary=2)
    carry_out(info)
    confirm_bulk(info.id, actor=ANNA)
    carry_out(info)
    entries = AuditEntry.objects.order_by("id")
    assert [(entry.action, entry.count) for entry in entries] == [
        ("bulk_retry_requested", 0),
        ("bulk_retry_confirmed", 2),
        ("bulk_retry", 12),
    ]
    assert {(e.actor, e.actor_id, e.source, e.target_kind, e.target_id) for e in entries} == {
        ("anna", "7", "admin", "bulk_operation", str(info.id))
    }
    assert entries[0].after == {"filter": {}, "spread": "", "canary": 2}
    assert entries[2].after == {"done": 12, "skipped": 0}


def test_the_error_of_a_batch_tells_no_payload(monkeypatch):
    """PostgreSQL adds the row that failed to what it says."""
    die()
    info = retry_all()

    def refuse(self, **options):
        raise RuntimeError(
            'violates not-null constraint\nDETAIL:  Failing row contains ({"password": "hunter2"}, \x00)'
        )

    monkeypatch.setattr(step_module._Step, "_settle", refuse)
    with pytest.raises(RuntimeError):
        bulk_step(info.id)
    assert get_bulk(info.id).error == "RuntimeError: violates not-null constraint"
