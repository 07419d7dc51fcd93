"""Alerts and queues: what an operator does with them."""

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from django_jobs.conf import CONDITIONS
from django_jobs.ids import uuid7
from django_jobs.models import Alert, AuditEntry, Queue
from django_jobs.templatetags import django_jobs_admin as jobs_tags
from tests.factories import QueueFactory

from .support import messages_of, page, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def alert():
    return Alert.objects.create(condition="oldest_job", subject="bulk", severity="error", summary="bulk is late")


def test_open_alerts_are_on_the_overview_and_on_their_page(boss, alert):
    assert "bulk is late" in page(boss, "job_overview")
    assert "bulk is late" in page(boss, "alert_changelist")
    Alert.objects.update(state="resolved")
    assert "bulk is late" not in page(boss, "job_overview")
    assert "bulk is late" not in page(boss, "alert_changelist")
    assert "bulk is late" in page(boss, "alert_changelist", state="resolved")


@pytest.mark.parametrize(("action", "state"), [("acknowledge", "acknowledged"), ("resolve", "resolved")])
def test_an_alert_is_acknowledged_or_resolved_once(boss, alert, action, state):
    boss.post(url(f"alert_{action}", alert.pk))
    again = boss.post(url(f"alert_{action}", alert.pk), follow=True)
    assert messages_of(again)[-1] == "Nothing was done: the alert has changed meanwhile."
    alert.refresh_from_db()
    assert alert.state == state
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.target_id) == (action, "boss", str(alert.pk))


def test_an_alert_that_nobody_knows_is_not_found(boss):
    assert boss.post(url("alert_resolve", uuid7())).status_code == 404


def test_a_queue_is_paused_and_resumed(boss):
    boss.post(url("queue_pause"), {"queue": "bulk", "until": ""})
    assert Queue.objects.get().paused_at is not None
    assert "paused" in page(boss, "queue_changelist")
    boss.post(url("queue_resume"), {"queue": "bulk"})
    assert Queue.objects.get().paused_at is None
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"pause", "resume"}


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"queue": "nowhere"},
        {"queue": "bulk", "until": "soon"},
        {"queue": "bulk", "until": "2020-01-01T00:00"},
        {"queue": "bulk", "until": "2026-02-31T00:00"},
        {"queue": "bulk", "until": "9999-12-31T23:59"},
    ],
)
def test_a_pause_that_is_none_is_refused(boss, form):
    response = boss.post(url("queue_pause"), form, follow=True)
    assert messages_of(response)
    assert not Queue.objects.exists()


def test_a_pause_that_is_over_is_not_shown(boss):
    QueueFactory(name="bulk", paused=True, resume_at=timezone.now() - timedelta(minutes=1))
    assert "dj-is-paused" not in page(boss, "queue_changelist")


def test_the_overview_counts_all_alerts_that_are_not_resolved(boss):
    Alert.objects.bulk_create(
        Alert(condition="oldest_job", subject=f"q{n}", severity="error", summary="late") for n in range(23)
    )
    assert boss.get(url("job_overview")).context["alert_count"] == 23


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_is_told_in_words_in_both_languages(condition):
    told = {}
    for language in ("en", "de"):
        with translation.override(language):
            told[language] = str(jobs_tags.condition(condition))
    assert condition not in told.values()
    assert told["en"] != told["de"]


def test_an_alert_leads_to_where_one_looks_first_if_one_may_go_there(client, make_user, alert):
    client.force_login(make_user("view_alert", "view_queue"))
    link = f'<a href="{url("queue_changelist")}">Queues</a>'
    assert f"a job waits for too long</span> · bulk · {link}" in page(client, "alert_changelist")
    client.force_login(make_user("view_alert", name="otto"))
    assert url("queue_changelist") not in page(client, "alert_changelist")
