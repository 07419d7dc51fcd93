"""Many dead jobs at once: previewed, started once however often somebody clicks, watched, confirmed, aborted."""

import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobs.ids import uuid7
from django_jobs.models import AuditEntry, BulkOperation, DeadJob, Job
from django_jobs.operations import bulk_step as step_module
from django_jobs.operations.bulk_step import bulk_step
from tests.factories import DeadJobFactory

from .support import messages_of, page, url

pytestmark = pytest.mark.django_db


def form(kind="retry", **filter):
    return {"kind": kind, "which": "matching", "filter": json.dumps(filter)}


def start(client, data, **more):
    return client.post(url("deadjob_start"), data | {"bulk_id": str(uuid7())} | more)


def carry_out(operation):
    while bulk_step(operation.pk):
        pass
    operation.refresh_from_db()


def test_a_preview_tells_the_exact_count_and_changes_nothing(boss):
    DeadJobFactory.create_many(1234, fingerprint="1:aa")
    DeadJobFactory(fingerprint="1:bb")
    response = boss.post(url("deadjob_preview"), form(type="noop", fingerprint="1:aa"))
    text = response.content.decode()
    assert "1,234 dead jobs go back to their queues." in text
    assert "Retry 1,234 jobs" in text
    assert not BulkOperation.objects.exists()
    assert not AuditEntry.objects.exists()


def test_more_jobs_than_a_form_may_have_fields_are_retried(boss, settings):
    DeadJobFactory.create_many(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 500)
    response = start(boss, form(type="noop", fingerprint="1:0123456789abcdef"))
    operation = BulkOperation.objects.get()
    assert response["Location"] == url("bulkoperation_change", operation.pk)
    carry_out(operation)
    assert operation.done == Job.objects.count() == settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 500
    assert not DeadJob.objects.exists()


def test_two_clicks_start_one_operation(boss):
    DeadJobFactory.create_many(3)
    key = str(uuid7())
    first = start(boss, form(), bulk_id=key)
    second = start(boss, form(), bulk_id=key)
    assert first["Location"] == second["Location"]
    assert BulkOperation.objects.count() == 1
    carry_out(BulkOperation.objects.get())
    assert Job.objects.count() == 3


def test_jobs_that_others_moved_meanwhile_are_skipped_and_said(boss):
    jobs = DeadJobFactory.create_many(10)
    start(boss, form())
    boss.post(url("job_retry", jobs[0].pk))
    boss.post(url("job_discard", jobs[1].pk))
    operation = BulkOperation.objects.get()
    carry_out(operation)
    assert Job.objects.count() == 9
    text = page(boss, "bulkoperation_change", operation.pk)
    assert "8 of 8 done" in text or "8 of 10 done, 2 skipped (changed meanwhile)" in text


def test_the_ticked_ones_are_discarded(boss):
    jobs = DeadJobFactory.create_many(3)
    data = {"kind": "discard", "which": "ticked", "ids": [str(jobs[0].pk), str(jobs[1].pk)]}
    text = boss.post(url("deadjob_preview"), data).content.decode()
    assert "2 dead jobs are given up." in text
    start(boss, data)
    carry_out(BulkOperation.objects.get())
    assert [job.pk for job in DeadJob.objects.all()] == [jobs[2].pk]


def test_the_preview_starts_what_it_showed(boss):
    """The hidden fields of the preview are what ``start`` takes."""
    jobs = DeadJobFactory.create_many(3)
    response = boss.post(url("deadjob_preview"), {"kind": "retry", "which": "ticked", "ids": [str(jobs[0].pk)]})
    context = response.context
    data = {
        "kind": "retry",
        "filter": context["filter_json"],
        "bulk_id": str(context["bulk_id"]),
        "canary": "",
        "spread": "",
    }
    boss.post(url("deadjob_start"), data)
    carry_out(BulkOperation.objects.get())
    assert [job.pk for job in Job.objects.all()] == [jobs[0].pk]


def test_a_canary_waits_for_a_word_and_the_rest_follows(boss):
    DeadJobFactory.create_many(10)
    start(boss, form(), canary="2")
    operation = BulkOperation.objects.get()
    carry_out(operation)
    assert (operation.state, Job.objects.count()) == ("canary", 2)
    text = page(boss, "bulkoperation_change", operation.pk)
    assert "Shall the rest follow?" in text
    boss.post(url("bulkoperation_confirm", operation.pk))
    carry_out(operation)
    assert (operation.state, Job.objects.count()) == ("done", 10)
    again = boss.post(url("bulkoperation_confirm", operation.pk), follow=True)
    assert messages_of(again)[-1].startswith("Nothing was done")


def test_an_operation_is_aborted(boss):
    DeadJobFactory.create_many(10)
    start(boss, form(), canary="2")
    operation = BulkOperation.objects.get()
    carry_out(operation)
    boss.post(url("bulkoperation_abort", operation.pk))
    carry_out(operation)
    assert (operation.state, Job.objects.count(), DeadJob.objects.count()) == ("aborted", 2, 8)
    assert {"bulk_retry_requested", "bulk_retry_aborted"} <= set(AuditEntry.objects.values_list("action", flat=True))


def test_a_spread_is_kept(boss):
    DeadJobFactory()
    start(boss, form(), spread="30")
    assert BulkOperation.objects.get().spread == timedelta(minutes=30)


@pytest.mark.parametrize(
    "values", [{"canary": "101"}, {"canary": "-1"}, {"canary": "x"}, {"spread": "1.5"}, {"spread": "9" * 50}]
)
def test_a_number_that_is_none_shows_the_form_again(boss, values):
    DeadJobFactory()
    response = start(boss, form(), **values)
    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert not BulkOperation.objects.exists()


@pytest.mark.parametrize(
    "data",
    [
        {"which": "ticked"},
        {"which": "ticked", "ids": ["x"]},
        {"which": "ticked", "ids": [""] * 3},
        {"filter": ""},
        {"filter": "[]"},
        {"filter": '{"colour": "red"}'},
        {"filter": '{"failed_from": "soon"}'},
        {"filter": '{"failed_from": 7}'},
        {"filter": '{"reason": "boredom"}'},
        {"filter": '{"ids": 7}'},
        {"filter": '{"type": {"a": 1}}'},
        {"filter": "[" * 100_000},
    ],
)
def test_a_form_that_was_tampered_with_starts_nothing(boss, data):
    DeadJobFactory()
    for name in ("deadjob_preview", "deadjob_start"):
        response = boss.post(url(name), {"kind": "retry", "bulk_id": str(uuid7())} | data, follow=True)
        assert response.status_code == 200
        assert messages_of(response)
    assert not BulkOperation.objects.exists()


def test_the_list_hands_its_filter_on(boss):
    DeadJobFactory(tenant="acme", failed_at=timezone.now())
    DeadJobFactory(tenant="other")
    shown = boss.get(url("deadjob_changelist"), {"q": "acme"})
    data = {"kind": "retry", "which": "matching", "filter": shown.context["filter_json"]}
    assert "Retry 1 job" in boss.post(url("deadjob_preview"), data).content.decode()


def test_an_operation_that_nobody_knows_is_not_found(boss):
    assert boss.get(url("bulkoperation_change", uuid7())).status_code == 404
    assert boss.post(url("bulkoperation_abort", uuid7())).status_code == 404


def test_the_latest_operations_are_listed(boss):
    DeadJobFactory()
    start(boss, form(type="noop"))
    text = page(boss, "bulkoperation_changelist")
    assert "Type: noop" in text
    assert "boss" in text


def test_whoever_may_not_see_bulk_operations_is_told_that_it_began(client, make_user):
    DeadJobFactory()
    client.force_login(make_user("view_deadjob", "retry_deadjob"))
    response = client.post(url("deadjob_start"), form() | {"bulk_id": str(uuid7())}, follow=True)
    assert response.status_code == 200
    assert messages_of(response) == ["Maintenance does it now. You may not see how far it is."]
    assert BulkOperation.objects.count() == 1


def test_the_page_of_an_operation_tells_how_far_it_is(boss, monkeypatch):
    monkeypatch.setattr(step_module, "BATCH", 10)
    DeadJobFactory.create_many(35)
    start(boss, form())
    operation = BulkOperation.objects.get()
    assert "waits for maintenance" in page(boss, "bulkoperation_change", operation.pk)
    bulk_step(operation.pk)
    text = page(boss, "bulkoperation_change", operation.pk)
    assert "10 of 35 done, 0 skipped" in text
    assert re.search(r'<progress max="1" value="0\.2857', text)
    assert 'data-dj-live="2"' in text
    carry_out(operation)
    text = page(boss, "bulkoperation_change", operation.pk)
    assert "35 of 35 done, 0 skipped" in text
    assert "data-dj-live" not in text


def test_a_form_that_is_sent_again_with_other_values_says_so_and_takes_a_new_id(boss):
    """Somebody goes back in the browser, changes a number and sends the form once more."""
    DeadJobFactory.create_many(3)
    key = str(uuid7())
    start(boss, form(), bulk_id=key, canary="1")
    again = start(boss, form(), bulk_id=key, canary="2")
    assert "was used for another request" in again.content.decode()
    assert str(again.context["bulk_id"]) != key
    assert BulkOperation.objects.count() == 1
    start(boss, form(), bulk_id=str(again.context["bulk_id"]), canary="2")
    assert BulkOperation.objects.count() == 2


def test_asking_for_many_takes_as_few_statements_as_asking_for_few(boss):
    DeadJobFactory.create_many(2)
    with CaptureQueriesContext(connection) as few:
        start(boss, form())
    DeadJobFactory.create_many(2_000)
    with CaptureQueriesContext(connection) as many:
        start(boss, form())
    assert len(many) == len(few)
    about_jobs = [query["sql"] for query in many if "django_jobs_dead_job" in query["sql"]]
    assert about_jobs
    assert all("LIMIT 1" in sql for sql in about_jobs)
