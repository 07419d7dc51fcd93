"""The page of a job: wherever the job is, whatever its row lacks, and what can be done with it."""

import json
from datetime import timedelta

import pytest
from django.db.models import JSONField, Value
from django.utils import timezone
from pydantic import SecretStr

from django_jobs import job as declare
from django_jobs.conf import get_settings
from django_jobs.ids import uuid7
from django_jobs.models import AuditEntry, DeadJob, Job, JobHistory
from django_jobs.registry import registry
from tests.factories import DeadJobFactory, JobFactory, JobHistoryFactory

from .support import messages_of, page, url

pytestmark = pytest.mark.django_db

ERROR = {
    "at": "2026-11-29T20:00:00+00:00",
    "attempt": 1,
    "type": "ValueError",
    "message": "no such invoice",
    "traceback": "Traceback …",
    "worker": "w1",
    "duration_ms": 12,
}
MANY = [ERROR | {"attempt": n + 1, "message": f"error number {n + 1}"} for n in range(10_000)]
ERRORS = {
    "none": [],
    "one": [ERROR],
    "ten thousand": MANY,
    "no list": {"a": 1},
    "no objects": [1, None, "x", []],
    "empty objects": [{}],
    "odd values": [{"at": "yesterday", "attempt": "x", "duration_ms": "long", "message": None, "worker": 7}],
    "impossible time": [ERROR | {"at": "2026-13-45T99:00:00Z"}],
}
PAYLOADS = {
    "null": Value(None, JSONField()),
    "list": [1, 2],
    "2 MB": {"text": "x" * 2_000_000},
    "text": "a",
    "nested": {"a": {"b": [None]}},
}
PLACES = {
    "pending": lambda **f: JobFactory(**f).pk,
    "scheduled": lambda **f: JobFactory(scheduled=True, **f).pk,
    "retrying": lambda **f: JobFactory(scheduled=True, attempts=1, last_error="no such invoice", **f).pk,
    "processing": lambda **f: JobFactory(processing=True, **f).pk,
    "cancelling": lambda **f: JobFactory(processing=True, cancel_requested_at=timezone.now(), **f).pk,
    "untaken": lambda **f: JobFactory(scheduled=True, untaken_since=timezone.now(), **f).pk,
    "of a later release": lambda **f: JobFactory(status="zzz", **f).pk,
    "dead": lambda **f: DeadJobFactory(**f).pk,
    "dead, nothing known": lambda **f: DeadJobFactory(error_type="", error_summary="", fingerprint="", **f).pk,
}
FINISHED = ("succeeded", "cancelled", "discarded", "zzz")


@pytest.mark.parametrize("place", PLACES)
def test_a_page_takes_any_state_with_any_errors(boss, place):
    for errors in ERRORS.values():
        job_id = PLACES[place](errors=errors)
        assert str(job_id) in page(boss, "job_change", job_id)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_page_takes_any_payload_and_an_unknown_type(boss, payload):
    for place in ("pending", "processing", "dead"):
        text = page(boss, "job_change", PLACES[place](payload=PAYLOADS[payload], type="gone.from_the_code"))
        assert len(text) < 200_000


@pytest.mark.parametrize("status", FINISHED)
def test_a_page_takes_any_history(boss, status):
    for errors in ERRORS.values():
        row = JobHistoryFactory(status=status, errors=errors, duration_ms=None, result=[1], metrics={"rows": 3})
        assert str(row.job_id) in page(boss, "job_change", row.job_id)


@pytest.mark.parametrize(
    "progress", [{}, [], "half", {"fraction": "x"}, {"fraction": True}, {"fraction": 7, "message": 3}]
)
def test_a_page_takes_any_progress(boss, progress):
    assert boss.get(url("job_change", JobFactory(processing=True, progress=progress).pk)).status_code == 200


def test_a_job_that_nobody_knows_is_not_found(boss):
    assert boss.get(url("job_change", uuid7())).status_code == 404


def test_the_timeline_tells_enqueuer_attempts_gaps_and_end(boss):
    errors = [ERROR, ERROR | {"attempt": 5, "message": "later", "worker": "w2", "duration_ms": 1500}]
    job = DeadJobFactory(errors=errors, attempts=5, context={"enqueued_by": "checkout", "request_id": "r-1"})
    text = page(boss, "job_change", job.pk)
    for told in ("Enqueued by checkout", "Attempt 1 failed", "No record of attempts 2 to 4", "Attempt 5 failed"):
        assert told in text
    assert "Dead after 5 attempts" in text
    assert text.index("Attempt 5 failed") < text.index("Attempt 1 failed")
    assert "1.5 s" in text
    assert "on w2" in text
    assert "r-1" in text


def test_a_waiting_job_is_explained(boss):
    text = page(boss, "job_change", JobFactory(scheduled=True).pk)
    assert "It is scheduled for" in text
    assert "serves its queue default" in text


def test_secrets_are_hidden_until_they_are_revealed_and_that_is_audited(boss):
    job = DeadJobFactory(payload={"password": "hunter2", "order": 7})
    assert "hunter2" not in page(boss, "job_change", job.pk)
    assert not AuditEntry.objects.exists()
    assert "hunter2" in boss.post(url("job_reveal", job.pk)).content.decode()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target_id, entry.actor) == ("reveal_payload", str(job.pk), "boss")
    assert "hunter2" not in json.dumps([entry.before, entry.after])


def test_a_dead_job_is_retried_once_however_often_somebody_clicks(boss):
    job = DeadJobFactory()
    first = boss.post(url("job_retry", job.pk), follow=True)
    assert messages_of(first) == ["It goes back to its queue with fresh attempts."]
    second = boss.post(url("job_retry", job.pk), follow=True)
    assert messages_of(second) == ["Nothing was done: the job has changed meanwhile."]
    assert Job.objects.filter(pk=job.pk).count() == 1
    assert AuditEntry.objects.count() == 1


def test_a_dead_job_is_discarded(boss):
    job = DeadJobFactory()
    boss.post(url("job_discard", job.pk))
    assert JobHistory.objects.get(job_id=job.pk).status == "discarded"
    assert not DeadJob.objects.exists()


def test_a_job_is_cancelled_run_now_and_moved_in_line(boss):
    job = JobFactory(scheduled=True)
    boss.post(url("job_priority", job.pk), {"priority": "7"})
    boss.post(url("job_run_now", job.pk))
    job.refresh_from_db()
    assert job.priority == 7
    assert job.run_at < timezone.now() + timedelta(seconds=5)
    boss.post(url("job_cancel", job.pk))
    assert JobHistory.objects.get(job_id=job.pk).status == "cancelled"
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"change_priority", "run_now", "cancel"}


@pytest.mark.parametrize("priority", ["", "high", "99999999", "1.5", "-40000", "1" * 5000])
def test_a_priority_that_is_none_changes_nothing(boss, priority):
    job = JobFactory(scheduled=True)
    response = boss.post(url("job_priority", job.pk), {"priority": priority}, follow=True)
    assert messages_of(response) == ["A priority is a whole number from -32768 to 32767."]
    job.refresh_from_db()
    assert job.priority == 0


@pytest.mark.parametrize("action", ["cancel", "retry", "discard", "run_now", "priority"])
def test_an_action_on_a_job_that_is_gone_says_so(boss, action):
    response = boss.post(url(f"job_{action}", uuid7()), {"priority": "1"})
    assert response.status_code == 302
    response = boss.get(url("job_changelist"))
    assert messages_of(response)[0].startswith("Nothing was done")


def test_a_payload_is_changed_before_the_retry(boss):
    job = DeadJobFactory(type="mark", payload={"label": 1})
    form = boss.post(url("job_edit", job.pk)).content.decode()
    assert "&quot;label&quot;: 1" in form
    response = boss.post(url("job_edit", job.pk), {"payload": '{"label": "a"}'}, follow=True)
    assert messages_of(response) == ["It goes back to its queue with the changed payload and fresh attempts."]
    assert Job.objects.get(pk=job.pk).payload == {"label": "a"}


@pytest.mark.parametrize("payload", ['{"label": 1}', "[]", "{", "", '{"label": "a", "more": 1}', "NaN", "[" * 100_000])
def test_a_payload_that_does_not_fit_is_sent_back_with_what_is_wrong(boss, payload):
    job = DeadJobFactory(type="mark", payload={"label": "old"})
    response = boss.post(url("job_edit", job.pk), {"payload": payload})
    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert DeadJob.objects.get(pk=job.pk).payload == {"label": "old"}


def test_all_works_without_the_handlers_code(boss):
    live, dead = JobFactory(scheduled=True, type="elsewhere.a"), DeadJobFactory(type="elsewhere.b")
    for name in ("job_changelist", "deadjob_changelist", "deadjob_groups"):
        assert "elsewhere." in page(boss, name)
    assert "elsewhere.a" in page(boss, "job_change", live.pk)
    boss.post(url("job_retry", dead.pk))
    boss.post(url("job_cancel", live.pk))
    assert Job.objects.get().pk == dead.pk


def test_a_revealed_page_does_not_refresh_itself(boss):
    """A GET of its address is refused, and would hide the payload again."""
    job = DeadJobFactory(payload={"password": "hunter2"})
    assert "data-dj-live" in page(boss, "job_change", job.pk)
    assert "data-dj-live" not in boss.post(url("job_reveal", job.pk)).content.decode()


@pytest.mark.parametrize(
    ("attempts", "english", "german"), [(1, "1 attempt", "1 Versuch"), (2, "2 attempts", "2 Versuchen")]
)
def test_one_attempt_is_not_many(boss, attempts, english, german):
    job = DeadJobFactory(attempts=attempts, errors=[])
    assert f"<strong>Dead after {english}</strong>" in page(boss, "job_change", job.pk)
    told = boss.get(url("job_change", job.pk), headers={"accept-language": "de"}).content.decode()
    assert f"<strong>Tot nach {german}</strong>" in told


def test_progress_is_a_bar_and_words(boss):
    job = JobFactory(processing=True, progress={"fraction": 0.25, "message": "row 50 of 200"})
    for name, args in (("job_change", [job.pk]), ("job_changelist", [])):
        text = page(boss, name, *args)
        assert '<progress max="1" value="0.25" aria-label="Progress"></progress>' in text
        assert "25 % · row 50 of 200" in text


def test_a_number_that_no_float_holds_is_no_progress(boss):
    job = JobFactory(processing=True, progress={"fraction": 10**400})
    assert "<progress" not in page(boss, "job_change", job.pk)


@pytest.fixture
def types():
    before = dict(registry._by_name)
    yield registry
    registry._by_name = before


def test_what_the_signature_calls_secret_is_hidden_whatever_its_name(boss, types):
    @declare("admin.log_in")
    def log_in(phrase: SecretStr, text: str = ""): ...

    dead = DeadJobFactory(type="admin.log_in", payload={"phrase": "hunter2", "text": "plain"})
    text = page(boss, "job_change", dead.pk)
    assert "hunter2" not in text
    assert "plain" in text


def test_what_a_setting_names_is_hidden(boss, settings):
    settings.DJANGO_JOBS = {**settings.DJANGO_JOBS, "REDACT": ["diagnosis"]}
    get_settings.cache_clear()
    job = JobFactory(payload={"diagnosis": "a cold", "patient": 7})
    text = page(boss, "job_change", job.pk)
    assert "a cold" not in text
    assert "patient" in text
