"""The audit: who did what to what, how many, before and after."""

import pytest

from django_jobs.ids import uuid7
from django_jobs.models import AuditEntry
from django_jobs.operations.audit import Actor
from django_jobs.operations.dead_letters import discard_dead, retry_dead
from django_jobs.operations.queues import pause
from tests.factories import DeadJobFactory

from .support import page, url

pytestmark = pytest.mark.django_db

ANNA, OTTO = Actor(name="anna", source="admin"), Actor(name="otto", source="command")


@pytest.fixture
def deeds():
    jobs = DeadJobFactory.create_many(2)
    retry_dead(jobs[0].pk, actor=ANNA)
    discard_dead(jobs[1].pk, actor=OTTO)
    pause("bulk", actor=OTTO)
    return jobs


def actions_of(response):
    return [entry.action for entry, _ in response.context["entries"]]


def test_each_deed_is_told_with_what_was_before_and_after(boss, deeds):
    text = page(boss, "auditentry_changelist")
    assert url("job_change", deeds[0].pk) in text
    assert "{&quot;status&quot;: &quot;dead&quot;}" in text
    assert "{&quot;paused&quot;: true, &quot;until&quot;: null}" in text
    AuditEntry.objects.create(actor="x", source="code", action="bulk_retry", target_kind="bulk_operation", count=1234)
    assert "1,234" in page(boss, "auditentry_changelist")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["pause", "discard", "retry"]),
        ({"actor": "otto"}, ["pause", "discard"]),
        ({"source": "admin"}, ["retry"]),
        ({"action": "discard"}, ["discard"]),
        ({"target_kind": "queue"}, ["pause"]),
        ({"target_kind": "queue", "target_id": "bulk"}, ["pause"]),
        ({"target_kind": "queue", "target_id": "default"}, []),
    ],
)
def test_the_audit_is_narrowed(boss, deeds, query, found):
    assert actions_of(boss.get(url("auditentry_changelist"), query)) == found


@pytest.mark.parametrize("target", ["", "no id", str(uuid7())])
def test_an_entry_about_anything_is_shown(boss, target):
    AuditEntry.objects.create(actor="x", source="code", action="conjure", target_kind="job", target_id=target)
    assert "conjure" in page(boss, "auditentry_changelist")


def test_by_which_way_something_was_done_is_said_in_the_viewers_language(boss, deeds):
    text = boss.get(url("auditentry_changelist"), headers={"accept-language": "de"}).content.decode()
    assert "Kommando" in text[text.index("<tbody>") :]
