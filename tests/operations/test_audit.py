"""Every action of an operator leaves an entry, in the transaction of the action, or none if nobody is named."""

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from django_jobs import (
    Actor,
    acknowledge_alert,
    cancel,
    create_schedule,
    delete_schedule,
    disable_schedule,
    discard_dead,
    enable_schedule,
    pause,
    resolve_alert,
    resume,
    retry_changed,
    retry_dead,
    run_schedule_now,
    update_schedule,
)
from django_jobs.exceptions import InvalidOption, InvalidPayload, JobNotFound, UnknownJobType
from django_jobs.ids import uuid7
from django_jobs.models import Alert, AuditEntry, DeadJob, Job
from tests.factories import JobFactory
from tests.operations.handlers import Line, note, order
from tests.operations.support import committing
from tests.operations.triage import ANNA, die

pytestmark = committing


def entries():
    return [
        (entry.action, entry.target_kind, entry.target_id, entry.before, entry.after)
        for entry in AuditEntry.objects.order_by("id")
    ]


def test_an_entry_says_who_did_it_when_and_from_where():
    (job,) = die()
    retry_dead(job.id, actor=ANNA)
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_id, entry.source, entry.count) == ("anna", "7", "admin", 1)
    assert abs(entry.at - timezone.now()) < timedelta(minutes=1)


@pytest.mark.parametrize(("act", "name"), [(retry_dead, "retry"), (discard_dead, "discard")])
def test_each_dead_job_that_was_moved_has_an_entry_and_no_other(act, name):
    jobs = die(3)
    others = JobFactory()
    assert act([jobs[0].id, jobs[2].id, others.id], actor=ANNA) == 2
    assert sorted(entries()) == sorted(
        (name, "job", str(job.id), {"status": "dead"}, None) for job in (jobs[0], jobs[2])
    )


def test_cancelling_pausing_and_resuming_are_entered_with_before_and_after():
    job, until = note.enqueue(), timezone.now() + timedelta(hours=1)
    cancel(job.id, actor=ANNA)
    pause("bulk", until=until, actor=ANNA)
    pause("bulk", actor=ANNA)
    resume("bulk", actor=ANNA)
    assert entries() == [
        ("cancel", "job", str(job.id), {"status": "pending"}, {"cancellation": "cancelled"}),
        ("pause", "queue", "bulk", {"paused": False}, {"paused": True, "until": str(until)}),
        ("pause", "queue", "bulk", {"paused": True, "until": str(until)}, {"paused": True, "until": None}),
        ("resume", "queue", "bulk", {"paused": True, "until": None}, {"paused": False}),
    ]


def test_what_was_too_late_to_cancel_has_no_entry():
    (job,) = die()
    assert cancel(job.id, actor=ANNA) == "too_late"
    assert entries() == []


def test_without_an_actor_there_is_no_entry():
    jobs = die(2)
    retry_dead(jobs[0].id)
    discard_dead(jobs[1].id)
    cancel(note.enqueue().id)
    pause("bulk")
    resume("bulk")
    assert entries() == []


def test_an_action_that_is_rolled_back_has_no_entry():
    jobs = die(2)
    with transaction.atomic():
        retry_dead(jobs[0].id, actor=ANNA)
        pause("bulk", actor=ANNA)
        transaction.set_rollback(True)
    assert entries() == []


def test_an_actor_is_made_of_any_user():
    assert Actor.of_user(User(pk=3, username="joe"), "admin") == Actor(name="joe", id="3", source="admin")
    custom = SimpleNamespace(pk="a-b", get_username=lambda: "joe@example.com")
    assert Actor.of_user(custom, "api") == Actor(name="joe@example.com", id="a-b", source="api")
    assert Actor.of_command().source == "command"
    with pytest.raises(InvalidOption, match="name"):
        Actor(name="")


@pytest.mark.parametrize("name", ["x" * 1000, "\x00\ud800", '"><script>'], ids=["long", "unstorable", "hostile"])
def test_any_name_can_be_entered(name):
    (job,) = die()
    actor = Actor(name=name, id=name)
    assert "\0" not in actor.name
    assert actor.name == actor.id == Actor(name=actor.name).name
    retry_dead(job.id, actor=actor)
    assert 0 < len(AuditEntry.objects.get().actor) <= 200


def doomed(**payload):
    (job,) = die(type="operations.note", payload=payload)
    return job


def test_a_dead_job_is_retried_with_a_changed_payload():
    job = doomed(text="a", number=1)
    assert retry_changed(job.id, {"text": "b", "number": 2}, actor=ANNA)
    assert Job.objects.get().payload == {"text": "b", "number": 2}
    assert entries() == [
        (
            "retry_changed",
            "job",
            str(job.id),
            {"payload": {"text": "a", "number": 1}},
            {"payload": {"text": "b", "number": 2}},
        )
    ]
    assert not retry_changed(job.id, {"text": "c"}, actor=ANNA)
    assert Job.objects.get().payload == {"text": "b", "number": 2}


def test_a_changed_payload_is_stored_as_enqueueing_would_store_it():
    order_id, at = uuid7(), timezone.now()
    new = order.enqueue(id=order_id, at=at, lines=[Line("a", Decimal("1.50"))])
    (job,) = die(type="operations.order", payload={})
    given = {"id": str(order_id).upper(), "at": at.isoformat(), "lines": [{"sku": "a", "price": "1.50"}]}
    retry_changed(job.id, given)
    stored = dict(Job.objects.values_list("id", "payload"))
    assert stored[job.id] == stored[new.id]


@pytest.mark.parametrize(
    "payload",
    [{"number": "two"}, {"text": None}, {"unknown": 1}, {"text": "x" * 300_000}, [], "text", None, {"text": object()}],
    ids=lambda value: repr(value)[:20],
)
def test_a_changed_payload_that_does_not_fit_is_refused_and_the_job_stays_dead(payload):
    job = doomed(text="a")
    with pytest.raises(InvalidPayload):
        retry_changed(job.id, payload, actor=ANNA)
    assert DeadJob.objects.get().payload == {"text": "a"}
    assert entries() == []


def test_without_the_handler_the_payload_cannot_be_changed_but_the_job_retried():
    (job,) = die(type="not_deployed")
    with pytest.raises(UnknownJobType):
        retry_changed(job.id, {})
    assert retry_dead(job.id) == 1


def test_a_changed_payload_for_no_job_is_an_error():
    with pytest.raises(JobNotFound):
        retry_changed("x", {})


def test_secrets_of_a_changed_payload_are_not_entered():
    (job,) = die(type="operations.anything", payload={"value": {"api_key": "old"}})
    retry_changed(job.id, {"value": {"api_key": "new", "n": 1}}, actor=ANNA)
    assert "old" not in str(entries())
    assert "new" not in str(entries()).replace("new_", "")
    assert Job.objects.get().payload == {"value": {"api_key": "new", "n": 1}}


def test_what_is_done_to_a_schedule_is_entered_with_before_and_after():
    create_schedule("hourly", type=note, payload={"number": 1}, every=timedelta(hours=1), actor=ANNA)
    update_schedule("hourly", every=timedelta(hours=2), actor=ANNA)
    disable_schedule("hourly", actor=ANNA)
    enable_schedule("hourly", actor=ANNA)
    enqueued = run_schedule_now("hourly", actor=ANNA)
    delete_schedule("hourly", actor=ANNA)
    assert {(kind, target) for _action, kind, target, _before, _after in entries()} == {("schedule", "hourly")}
    made, changed, paused, resumed, ran, deleted = entries()
    assert (made[0], made[3], made[4]["every"]) == ("create", None, "1:00:00")
    assert (changed[0], changed[3]["every"], changed[4]["every"]) == ("change", "1:00:00", "2:00:00")
    assert (paused[0], paused[3], paused[4]) == ("pause", {"enabled": True}, {"enabled": False})
    assert (resumed[0], resumed[3], resumed[4]) == ("resume", {"enabled": False}, {"enabled": True})
    assert (ran[0], ran[4]) == ("run_now", {"job": str(enqueued.id)})
    assert (deleted[0], deleted[3]["every"], deleted[4]) == ("delete", "2:00:00", None)


def test_what_is_done_to_an_alert_is_entered_and_nothing_else():
    alert = Alert.objects.create(condition="oldest_job", subject="bulk", severity="error", summary="late")
    assert acknowledge_alert(alert.pk, actor=ANNA)
    assert not acknowledge_alert(alert.pk, actor=ANNA)
    assert resolve_alert(alert.pk, actor=ANNA)
    assert not resolve_alert(alert.pk, actor=ANNA)
    about = {"condition": "oldest_job", "subject": "bulk"}
    assert entries() == [
        ("acknowledge", "alert", str(alert.pk), about | {"state": "open"}, {"state": "acknowledged"}),
        ("resolve", "alert", str(alert.pk), about | {"state": "acknowledged"}, {"state": "resolved"}),
    ]
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.resolved_by) == ("anna", "anna")
