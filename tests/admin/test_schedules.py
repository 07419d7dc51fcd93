"""Schedules: in words and slots, made, changed, paused and run; checked before anything is saved."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from django_jobs.models import AuditEntry, Job, Schedule
from django_jobs.operations.schedules import create_schedule

from .support import VIEWS, messages_of, page, url

pytestmark = pytest.mark.django_db

FORM = {
    "name": "morning",
    "type": "mark",
    "cron": "0 8 * * 1-5",
    "every": "",
    "timezone": "Europe/Berlin",
    "jitter": "60",
    "queue": "bulk",
    "priority": "3",
    "tenant": "acme",
    "catch_up": "skip",
    "overlap": "skip",
    "payload": '{"label": "a"}',
}


@pytest.fixture
def hourly():
    return create_schedule("hourly", type="mark", payload={"label": "a"}, every=timedelta(hours=1))


def test_a_schedule_is_told_in_words_with_its_next_slots(boss, hourly):
    assert "every hour" in page(boss, "schedule_changelist")
    response = boss.get(url("schedule_one"), {"name": "hourly"})
    assert len(response.context["meaning"].slots) == 5
    assert "every hour" in response.content.decode()


def test_a_schedule_is_made(boss):
    response = boss.post(url("schedule_save"), FORM, follow=True)
    assert messages_of(response) == ["Saved."]
    made = Schedule.objects.get()
    assert (made.pk, made.cron, made.queue, made.priority) == ("morning", "0 8 * * 1-5", "bulk", 3)
    assert (made.timezone, made.jitter, made.overlap) == ("Europe/Berlin", timedelta(minutes=1), "skip")
    assert made.next_run_at is not None
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target_id, entry.before) == ("create", "morning", None)


def test_a_schedule_is_changed_and_the_audit_tells_from_what_to_what(boss, hourly):
    boss.post(url("schedule_save"), FORM | {"edited": "hourly"})
    hourly.refresh_from_db()
    assert (hourly.cron, hourly.every) == ("0 8 * * 1-5", None)
    entry = AuditEntry.objects.get()
    assert entry.before["every"] == "1:00:00"
    assert entry.after["cron"] == "0 8 * * 1-5"


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "0 8 * *"},
        {"cron": "61 * * * *"},
        {"timezone": "Mars/Base"},
        {"every": "soon"},
        {"every": "nan"},
        {"every": "1e300"},
        {"every": "60"},
        {"cron": ""},
        {"jitter": "-1"},
        {"priority": "high"},
        {"type": "no.such.type"},
        {"payload": '{"label": 7}'},
        {"payload": "{"},
        {"queue": "nowhere"},
        {"catch_up": "maybe"},
        {"name": ""},
        {"name": "x" * 300},
    ],
    ids=str,
)
def test_what_is_wrong_is_said_and_nothing_is_saved(boss, wrong):
    response = boss.post(url("schedule_save"), FORM | wrong)
    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert not Schedule.objects.exists()


def test_a_form_is_checked_without_saving(boss):
    text = boss.post(url("schedule_check"), FORM).content.decode()
    assert "on Monday to Friday at 08:00, Europe/Berlin" in text
    text = boss.post(url("schedule_check"), FORM | {"cron": "0 25 * * *"}).content.decode()
    assert 'id="dj-preview"' in text
    assert "25" in text
    assert not Schedule.objects.exists()


def test_a_schedule_is_paused_resumed_and_run_now(boss, hourly):
    for action, enabled in (("pause", False), ("resume", True)):
        boss.post(url(f"schedule_{action}"), {"name": "hourly"})
        hourly.refresh_from_db()
        assert hourly.enabled is enabled
    boss.post(url("schedule_run"), {"name": "hourly"})
    assert Job.objects.get().type == "mark"
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == ["pause", "resume", "run_now"]


def test_a_schedule_that_is_declared_in_code_is_not_changed_here(boss, hourly):
    Schedule.objects.update(declared_in_code=True)
    assert "Declared in code" in boss.get(url("schedule_one"), {"name": "hourly"}).content.decode()
    response = boss.post(url("schedule_save"), FORM | {"edited": "hourly"})
    assert "declared in code" in response.content.decode()
    assert Schedule.objects.get().every == timedelta(hours=1)


def test_making_and_changing_are_rights_of_their_own(client, make_user, hourly):
    client.force_login(make_user(*VIEWS, "add_schedule"))
    assert client.post(url("schedule_save"), FORM | {"edited": "hourly"}).status_code == 403
    assert client.get(url("schedule_form"), {"name": "hourly"}).status_code == 403
    client.force_login(make_user(*VIEWS, "change_schedule", name="otto"))
    assert client.post(url("schedule_save"), FORM).status_code == 403
    assert client.get(url("schedule_form")).status_code == 403
    assert Schedule.objects.count() == 1


def test_a_hidden_payload_stays_as_it_is(client, make_user, hourly):
    Schedule.objects.update(type="gone", payload={"password": "hunter2"})
    client.force_login(make_user(*VIEWS, "change_schedule"))
    text = client.get(url("schedule_form"), {"name": "hourly"}).content.decode()
    assert "hunter2" not in text
    assert 'name="payload"' not in text
    client.post(url("schedule_save"), FORM | {"edited": "hourly", "payload": "{}"})
    assert Schedule.objects.get().payload == {"password": "hunter2"}


def test_rows_that_somebody_broke_by_hand_are_shown(boss, hourly):
    Schedule.objects.update(cron="nonsense", every=None, timezone="Mars/Base")
    assert "nonsense" in page(boss, "schedule_changelist")
    assert boss.get(url("schedule_one"), {"name": "hourly"}).status_code == 200
    assert boss.get(url("schedule_form"), {"name": "hourly"}).status_code == 200


@pytest.mark.parametrize("name", ["", "nobody", "\x00", "a\x00b"])
def test_a_schedule_that_nobody_knows_is_not_found(boss, name):
    assert boss.get(url("schedule_one"), {"name": name}).status_code == 404
    assert boss.post(url("schedule_pause"), {"name": name}).status_code == 404


SECOND = timedelta(seconds=1)
ODD = [timedelta(seconds=1_234_567), timedelta(days=14, microseconds=1), timedelta(seconds=0.1)]


@pytest.mark.parametrize("every", ODD, ids=str)
def test_saving_a_form_as_it_came_changes_nothing(boss, every):
    start = datetime(2026, 3, 1, 8, 30, 15, 123456, tzinfo=UTC)
    made = create_schedule(
        "odd", type="mark", payload={"label": "a"}, every=timedelta(seconds=1_234_567), jitter=every, start_at=start
    )
    values = boss.get(url("schedule_form"), {"name": "odd"}).context["values"]
    boss.post(url("schedule_save"), values | {"edited": "odd"})
    saved = Schedule.objects.get()
    for name in ("every", "jitter", "start_at", "end_at", "payload", "next_run_at"):
        assert getattr(saved, name) == getattr(made, name)
    assert AuditEntry.objects.get().after["every"] == str(made.every)


@pytest.mark.parametrize("every", ODD, ids=str)
def test_an_interval_is_written_out_in_full(boss, every):
    response = boss.post(
        url("schedule_save"), FORM | {"cron": "", "every": "1", "jitter": f"{every.total_seconds():f}"}
    )
    assert response.status_code == 302
    assert Schedule.objects.get().jitter == every
    form = boss.get(url("schedule_form"), {"name": "morning"}).context["values"]
    assert timedelta(seconds=float(form["jitter"])) == every


def test_a_schedule_has_a_start_an_end_and_an_expectation(boss):
    when = {"start_at": "2026-06-01T00:00", "end_at": "2030-07-01T00:00:30", "expect_success_within": "90000"}
    boss.post(url("schedule_save"), FORM | when)
    made = Schedule.objects.get()
    assert made.start_at == datetime(2026, 6, 1, tzinfo=timezone.get_current_timezone())
    assert made.end_at == datetime(2030, 7, 1, 0, 0, 30, tzinfo=timezone.get_current_timezone())
    assert made.expect_success_within == timedelta(hours=25)
    boss.post(url("schedule_save"), FORM | dict.fromkeys(when, "") | {"edited": "morning"})
    made.refresh_from_db()
    assert (made.start_at, made.end_at, made.expect_success_within) == (None, None, None)


def test_the_preview_keeps_to_start_and_end(boss):
    slots = (
        boss.post(url("schedule_check"), FORM | {"start_at": "2040-01-01T00:00", "end_at": "2040-01-03T12:00"})
        .context["meaning"]
        .slots
    )
    assert [slot.local.day for slot in slots] == [2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_at": "soon"},
        {"end_at": "2026-02-31T00:00"},
        {"start_at": "2027-01-01T00:00", "end_at": "2026-01-01T00:00"},
        {"expect_success_within": "0.5"},
        {"every": "1" * 30, "cron": ""},
    ],
    ids=str,
)
def test_a_time_that_is_none_is_refused(boss, wrong):
    assert 'role="alert"' in boss.post(url("schedule_save"), FORM | wrong).content.decode()
    assert not Schedule.objects.exists()


def test_a_secret_is_shown_by_post_only_and_to_the_record(client, make_user, hourly):
    Schedule.objects.update(payload={"label": "a", "password": "hunter2"})
    client.force_login(make_user(*VIEWS, "change_schedule", "reveal_payload"))
    assert "hunter2" not in client.get(url("schedule_form"), {"name": "hourly"}).content.decode()
    assert client.get(url("schedule_reveal"), {"name": "hourly"}).status_code == 405
    assert not AuditEntry.objects.exists()
    assert "hunter2" in client.post(url("schedule_reveal"), {"name": "hourly"}).content.decode()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target_kind, entry.target_id) == ("reveal_payload", "schedule", "hourly")


def test_a_secret_is_not_revealed_without_the_right(client, make_user, hourly):
    client.force_login(make_user(*VIEWS, "change_schedule"))
    assert client.post(url("schedule_reveal"), {"name": "hourly"}).status_code == 403
    client.force_login(make_user(*VIEWS, "reveal_payload", name="otto"))
    assert client.post(url("schedule_reveal"), {"name": "hourly"}).status_code == 403


def test_whoever_may_not_see_a_payload_cannot_give_it_to_another_type(client, make_user, hourly):
    Schedule.objects.update(type="gone", payload={"password": "hunter2"})
    client.force_login(make_user(*VIEWS, "change_schedule"))
    client.post(url("schedule_save"), FORM | {"edited": "hourly", "type": "mark"})
    assert Schedule.objects.get().type == "gone"
