"""get_job and cancel, wherever a job is. One table drives both, so that no state is forgotten."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobs import cancel, discard_dead, get_job, retry_dead
from django_jobs.exceptions import JobNotFound
from django_jobs.models import DeadJob, Job, JobHistory
from django_jobs.outcomes import Rescheduled
from tests.operations.handlers import note
from tests.operations.support import FAILURE, bury, claim, committing, fail, finish, session

pytestmark = committing


def scheduled():
    return note.using(delay=timedelta(hours=1)).enqueue(text="a").id


def pending():
    return note.enqueue(text="a").id


def processing():
    job_id = pending()
    with session() as opened:
        claim(opened)
    return job_id


def failed_retrying():
    job_id = pending()
    fail()
    return job_id


def retrying_again():
    """Failed once, and leased again."""
    job_id = pending()
    fail(delay=timedelta(0))
    with session() as opened:
        opened.stage()
        claim(opened)
    return job_id


def succeeded():
    job_id = pending()
    finish(result={"pdf": 7}, metrics={"rows": 3}, duration_ms=1500)
    return job_id


def cancelled():
    job_id = pending()
    cancel(job_id)
    return job_id


def dead():
    job_id = pending()
    bury()
    return job_id


def discarded():
    job_id = dead()
    discard_dead(job_id)
    return job_id


def retried():
    job_id = dead()
    retry_dead(job_id)
    return job_id


STATES = {
    scheduled: ("scheduled", "cancelled"),
    pending: ("pending", "cancelled"),
    processing: ("processing", "requested"),
    failed_retrying: ("failed_retrying", "cancelled"),
    retrying_again: ("processing", "requested"),
    succeeded: ("succeeded", "too_late"),
    cancelled: ("cancelled", "cancelled"),
    dead: ("dead", "too_late"),
    discarded: ("discarded", "too_late"),
    retried: ("failed_retrying", "cancelled"),
}
EACH = pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__)


def places(job_id):
    rows = (
        Job.objects.filter(id=job_id),
        DeadJob.objects.filter(id=job_id),
        JobHistory.objects.filter(job_id=job_id),
    )
    return [row.count() for row in rows]


@EACH
def test_a_job_is_found_wherever_it_is(make):
    job_id = make()
    info = get_job(job_id)
    assert (info.id, info.type, info.queue, info.tenant) == (job_id, "operations.note", "default", "")
    assert info.status == STATES[make][0]
    assert info == get_job(str(job_id))
    assert info.enqueued_at <= timezone.now() + timedelta(seconds=5)
    assert sum(places(job_id)) == 1


@EACH
def test_cancelling_answers_by_state_and_again_the_same(make):
    job_id = make()
    answer = STATES[make][1]
    before = places(job_id)
    assert cancel(job_id) == answer
    after = get_job(job_id)
    assert cancel(str(job_id)) == answer
    assert get_job(job_id) == after
    assert sum(places(job_id)) == 1
    match answer:
        case "cancelled":
            assert after.status == "cancelled"
        case "requested":
            assert (after.status, after.cancel_requested) == ("processing", True)
        case "too_late":
            assert places(job_id) == before
            assert after.status == STATES[make][0]


@EACH
def test_a_cancellation_that_rolls_back_did_not_happen(make):
    job_id = make()
    before = get_job(job_id)
    with transaction.atomic():
        cancel(job_id)
        transaction.set_rollback(True)
    assert get_job(job_id) == before


def test_a_scheduled_job_tells_when():
    info = get_job(scheduled())
    assert info.payload == {"text": "a"}
    assert timedelta(minutes=59) < info.next_attempt_at - timezone.now() < timedelta(minutes=61)
    assert (info.attempts, info.max_attempts, info.errors, info.last_error) == (0, 12, (), "")


def test_a_running_job_has_no_next_attempt():
    info = get_job(processing())
    assert info.next_attempt_at is None
    assert (info.attempts, info.cancel_requested) == (1, False)


def test_a_failed_job_tells_its_error_and_its_next_attempt():
    info = get_job(failed_retrying())
    assert info.last_error == "no such invoice"
    assert [(error["type"], error["message"], error["attempt"]) for error in info.errors] == [
        ("ValueError", "no such invoice", 1)
    ]
    assert timedelta(minutes=59) < info.next_attempt_at - timezone.now() < timedelta(minutes=61)


def test_a_finished_job_tells_its_result():
    info = get_job(succeeded())
    assert (info.result, info.metrics, info.duration_ms) == ({"pdf": 7}, {"rows": 3}, 1500)
    assert abs(info.finished_at - info.started_at - timedelta(seconds=1.5)) < timedelta(milliseconds=2)
    assert info.payload is None


def test_a_dead_job_tells_why():
    info = get_job(dead())
    assert (info.reason, info.last_error, info.payload) == ("exhausted", "no such invoice", {"text": "a"})
    assert info.finished_at is not None
    assert info.next_attempt_at is None


def test_a_discarded_job_keeps_its_errors():
    info = get_job(discarded())
    assert (info.last_error, info.attempts) == ("no such invoice", 1)
    assert info.finished_at is not None


def test_a_cancelled_job_keeps_its_errors_and_attempts():
    job_id = failed_retrying()
    cancel(job_id)
    assert (get_job(job_id).last_error, get_job(job_id).attempts) == ("no such invoice", 1)


def test_a_cancellation_asked_for_ends_a_later_failure_as_cancelled():
    job = note.enqueue(text="a")
    with session() as opened:
        (claimed,) = claim(opened)
        assert cancel(job.id) == "requested"
        again = Rescheduled(job_id=claimed.id, token=claimed.token, delay=timedelta(0), failure=FAILURE)
        opened.tick([again], [])
    assert get_job(job.id).status == "cancelled"
    assert cancel(job.id) == "cancelled"


@pytest.mark.parametrize("function", [get_job, cancel], ids=["get_job", "cancel"])
@pytest.mark.parametrize("id", [UUID(int=5), str(UUID(int=5))], ids=repr)
def test_a_job_that_is_not_there_is_not_found(function, id):
    with pytest.raises(JobNotFound, match=r"No job has the id 0.*5\. .*not committed.*history"):
        function(id)


@pytest.mark.parametrize("function", [get_job, cancel, retry_dead, discard_dead])
@pytest.mark.parametrize("id", ["", "7", "a\0", "not-a-uuid", "0" * 31, "'; DROP TABLE"], ids=ascii)
def test_what_is_no_id_is_not_found(function, id):
    with pytest.raises(JobNotFound, match="is no job id: job ids are UUIDs"):
        function(id)


@pytest.mark.parametrize("id", [None, 5, b"\0" * 16, object()], ids=lambda value: type(value).__name__)
def test_an_id_of_another_type_is_not_found(id):
    with pytest.raises(JobNotFound):
        get_job(id)
    with pytest.raises(JobNotFound):
        cancel(id)


def test_a_state_of_a_later_release_is_shown_as_it_is():
    job_id = pending()
    Job.objects.update(status="zzz")
    assert get_job(job_id).status == "zzz"
    Job.objects.all().delete()
    JobHistory.objects.create(job_id=job_id, type="t", queue="q", status="zzz", enqueued_at=timezone.now())
    assert get_job(job_id).status == "zzz"
    assert cancel(job_id) == "too_late"
