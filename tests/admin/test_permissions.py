"""Who sees and does what: every action is absent without its right, refused without it, and works with it alone."""

from datetime import timedelta

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobs.admin import ADMINS
from django_jobs.models import Alert, AuditEntry, BulkOperation, DeadJob, Job, JobHistory, Queue, Schedule
from django_jobs.operations.audit import Actor
from django_jobs.operations.bulk import start_bulk
from django_jobs.operations.dead_filter import DeadFilter
from tests.factories import DeadJobFactory, JobFactory

from .support import LISTS, VIEWS, page, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def job():
    return JobFactory(scheduled=True)


@pytest.fixture
def dead():
    return DeadJobFactory(payload={"password": "hunter2"})


def state():
    """Everything an action could change."""
    return (
        list(Job.objects.order_by("id").values_list("id", "run_at", "priority", "cancel_requested_at")),
        list(DeadJob.objects.order_by("id").values_list("id", "payload")),
        JobHistory.objects.count(),
        list(Queue.objects.values_list("name", "paused_at")),
        list(Schedule.objects.values_list("pk", "enabled", "cron")),
        list(Alert.objects.values_list("pk", "state")),
        AuditEntry.objects.count(),
    )


def alert():
    return Alert.objects.get_or_create(condition="oldest_job", subject="bulk", severity="error", summary="Old")[0]


def actions(job, dead):
    """Right, URL, data, what only its button has, and the page of the button."""
    Schedule.objects.get_or_create(pk="s", defaults={"type": "mark", "every": timedelta(hours=1), "payload": {}})
    one = url("schedule_one") + "?name=s"
    return {
        "cancel_job": (url("job_cancel", job.pk), {}, f"{job.pk}/cancel/", url("job_change", job.pk)),
        "run_job": (url("job_run_now", job.pk), {}, f"{job.pk}/run_now/", url("job_change", job.pk)),
        "retry_deadjob": (url("job_retry", dead.pk), {}, f"{dead.pk}/retry/", url("job_change", dead.pk)),
        "discard_deadjob": (url("job_discard", dead.pk), {}, f"{dead.pk}/discard/", url("job_change", dead.pk)),
        "reveal_payload": (url("job_reveal", dead.pk), {}, f"{dead.pk}/reveal/", url("job_change", dead.pk)),
        "change_alert": (url("alert_resolve", alert().pk), {}, "/resolve/", url("alert_changelist")),
        "change_schedule": (url("schedule_pause"), {"name": "s"}, "schedule/pause/", one),
        "pause_queue": (url("queue_pause"), {"queue": "default"}, "queue/pause/", url("queue_changelist")),
    }


RIGHTS = ["cancel_job", "run_job", "retry_deadjob", "discard_deadjob", "reveal_payload", "pause_queue"]
RIGHTS += ["change_alert", "change_schedule"]


@pytest.mark.parametrize("right", RIGHTS)
def test_an_action_without_its_right_is_hidden_and_refused(client, make_user, job, dead, right):
    others = [other for other in RIGHTS if other != right]
    client.force_login(make_user(*VIEWS, *others))
    target, data, button, shown_on = actions(job, dead)[right]
    before = state()
    assert button not in client.get(shown_on).content.decode()
    assert client.post(target, data).status_code == 403
    assert state() == before


@pytest.mark.parametrize("right", RIGHTS)
def test_each_right_alone_is_enough_for_its_action(client, make_user, job, dead, right):
    client.force_login(make_user(*VIEWS, right))
    target, data, button, shown_on = actions(job, dead)[right]
    before = state()
    assert button in client.get(shown_on).content.decode()
    assert client.post(target, data).status_code in (200, 302)
    assert state() != before
    assert AuditEntry.objects.get().actor == "olga"


@pytest.mark.parametrize("right", RIGHTS)
def test_a_right_without_the_view_of_its_page_is_not_enough(client, make_user, job, dead, right):
    client.force_login(make_user(right))
    target, data, *_ = actions(job, dead)[right]
    before = state()
    assert client.post(target, data).status_code == 403
    assert state() == before


@pytest.mark.parametrize("right", RIGHTS)
def test_an_action_is_a_post_with_a_token(make_user, job, dead, right):
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user(*VIEWS, right))
    target, data, *_ = actions(job, dead)[right]
    before = state()
    assert client.get(target).status_code == 405
    assert client.post(target, data).status_code == 403
    assert state() == before


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_shown_to_those_who_may_view_it_and_nobody_else(client, make_user, name):
    client.force_login(make_user(f"view_{name}"))
    assert client.get(url(f"{name}_changelist")).status_code == 200
    client.force_login(make_user(*[view for view in VIEWS if view != f"view_{name}"], name="otto"))
    assert client.get(url(f"{name}_changelist")).status_code == 403


def test_tabs_lead_only_where_the_viewer_may_go(client, make_user):
    client.force_login(make_user("view_job"))
    text = page(client, "job_changelist")
    assert url("job_overview") in text
    assert url("deadjob_changelist") not in text
    assert url("auditentry_changelist") not in text


def test_whoever_is_not_logged_in_is_asked_to(client, job):
    for target in (url("job_changelist"), url("job_change", job.pk), url("job_cancel", job.pk)):
        response = client.post(target) if target.endswith("cancel/") else client.get(target)
        assert response.status_code == 302
        assert "/login/" in response["Location"]
    assert Job.objects.exists()


@pytest.mark.parametrize("model", LISTS)
@pytest.mark.parametrize("form", ["add/", "1/delete/", "1/history/"])
def test_no_form_of_the_orm_is_there(boss, model, form):
    assert boss.get(url(f"{model}_changelist") + form).status_code == 404


@pytest.mark.parametrize(("kind", "right"), [("retry", "discard_deadjob"), ("discard", "retry_deadjob")])
def test_a_bulk_operation_needs_the_right_for_what_it_does(client, make_user, dead, kind, right):
    operation = start_bulk(kind, DeadFilter(type="noop"), actor=Actor(name="x"))
    client.force_login(make_user(*VIEWS, right))
    before = state()
    form = {"kind": kind, "which": "ticked", "ids": [str(dead.pk)]}
    assert client.post(url("deadjob_preview"), form).status_code == 403
    assert client.post(url("deadjob_start"), form).status_code == 403
    assert client.post(url("bulkoperation_abort", operation.id)).status_code == 403
    assert client.post(url("bulkoperation_confirm", operation.id)).status_code == 403
    assert "/abort/" not in page(client, "bulkoperation_change", operation.id)
    assert state() == before


def test_a_payload_with_something_hidden_is_edited_only_by_those_who_may_see_it(client, make_user, dead):
    client.force_login(make_user(*VIEWS, "retry_deadjob"))
    assert f"{dead.pk}/edit/" not in page(client, "job_change", dead.pk)
    assert client.post(url("job_edit", dead.pk)).status_code == 403
    assert client.post(url("job_edit", dead.pk), {"payload": "{}"}).status_code == 403
    client.force_login(make_user(*VIEWS, "retry_deadjob", "reveal_payload", name="otto"))
    assert "hunter2" in client.post(url("job_edit", dead.pk)).content.decode()
    assert AuditEntry.objects.get().action == "reveal_payload"


def test_no_address_that_takes_a_post_does_so_for_those_who_may_only_look(client, make_user, job, dead):
    """Whatever pages there are: also one that somebody adds."""
    actions(job, dead)
    client.force_login(make_user(*VIEWS))
    bulk = BulkOperation.objects.create(kind="retry", filter={}, state="canary", snapshot_at=timezone.now())
    ids = {"job": dead.pk, "alert": alert().pk, "bulkoperation": bulk.pk}
    form = {"name": "s", "edited": "s", "kind": "retry", "filter": "{}", "queue": "default", "payload": "{}"}
    before, refused = state(), []
    for model, model_admin in ADMINS.items():
        for pattern in model_admin(model, admin.site).get_urls():
            args = [ids.get(model._meta.model_name, job.pk)] if "<uuid:id>" in str(pattern.pattern) else []
            address = reverse(f"admin:{pattern.name}", args=args)
            if client.get(address).status_code == 405:
                assert client.post(address, form).status_code == 403, address
                refused.append(address)
    assert len(refused) == 21
    assert state() == before
