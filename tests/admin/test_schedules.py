"""Schedules: in words and slots, made, changed, paused and run; checked before anything is saved."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import JSONField, Value
from django.utils import timezone

from django_jobs.admin.schedule_form import changed_values
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


def test_two_restricted_day_fields_are_warned_about_before_and_after_saving(boss):
    words = "each day that matches either of them"
    assert words not in boss.post(url("schedule_check"), FORM).content.decode()
    either = FORM | {"cron": "0 0 13 * 5"}
    assert words in boss.post(url("schedule_check"), either).content.decode()
    boss.post(url("schedule_save"), either)
    assert words in boss.get(url("schedule_one"), {"name": "morning"}).content.decode()


def test_a_schedule_shows_when_it_ran_and_succeeded_last(boss, hourly):
    Schedule.objects.update(
        last_run_at=datetime(2026, 6, 1, 9, 17, 1, tzinfo=UTC),
        last_success_at=datetime(2026, 6, 1, 9, 17, 43, tzinfo=UTC),
    )
    with timezone.override("UTC"):
        text = boss.get(url("schedule_one"), {"name": "hourly"}).content.decode()
    assert "09:17:01" in text
    assert "09:17:43" in text


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
    assert (
        "Declared in code: change it there. Pause and resume hold"
        in boss.get(url("schedule_one"), {"name": "hourly"}).content.decode()
    )
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


BROKEN = [
    {"cron": "nonsense", "every": None, "timezone": "Mars/Base"},
    {"timezone": "Mars/Base"},
    {"every": timedelta(0)},
    {"every": timedelta(days=10_000)},
    {"cron": "0 8 * * *"},
    {"every": None},
    {"start_at": datetime(9999, 12, 31, 23, 59, tzinfo=UTC)},
    {"catch_up": "maybe", "overlap": "", "type": ""},
    {"payload": None, "expect": None},
    {"last_metrics": [1], "usual_metrics": "x", "expect": [1]},
]


@pytest.mark.parametrize("columns", BROKEN, ids=str)
def test_rows_that_somebody_broke_by_hand_are_shown(boss, hourly, columns):
    Schedule.objects.update(
        **{
            name: Value(None, JSONField()) if value is None and name in ("payload", "expect") else value
            for name, value in columns.items()
        }
    )
    assert "hourly" in page(boss, "schedule_changelist")
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


EXPECT = '{"rows_processed": {"at_least": 1}, "cents": {"near_usual": 0.5}}'


def test_a_schedule_says_which_numbers_it_expects(boss):
    boss.post(url("schedule_save"), FORM | {"expect": EXPECT})
    made = Schedule.objects.get()
    assert made.expect == {"rows_processed": {"at_least": 1}, "cents": {"near_usual": 0.5}}
    text = boss.get(url("schedule_one"), {"name": "morning"}).content.decode()
    assert "rows_processed: at least 1" in text
    assert "cents: within 50 % of the usual" in text
    form = boss.get(url("schedule_form"), {"name": "morning"}).context["values"]
    assert json.loads(form["expect"]) == made.expect
    boss.post(url("schedule_save"), FORM | {"edited": "morning", "expect": '{"rows_processed": {"at_least": 5}}'})
    made.refresh_from_db()
    assert made.expect == {"rows_processed": {"at_least": 5}}
    boss.post(url("schedule_save"), FORM | {"edited": "morning", "expect": " "})
    made.refresh_from_db()
    assert made.expect == {}


WRONG_EXPECTATIONS = {
    "rows": "this is not JSON",
    "{": "this is not JSON",
    "[" * 3_000: "this is not JSON",
    "1" * 5_000: "this is not JSON",
    '["rows"]': "expect must be a dict of names",
    '{"rows": 5}': "must be at_least(…) or near_usual(…)",
    '{"rows": {"at_leats": 1}}': "must be at_least(…) or near_usual(…)",
    '{"rows": {"at_least": "1"}}': "at_least() takes a finite number",
    '{"rows": {"at_least": NaN}}': "at_least() takes a finite number",
    '{"rows": {"at_least": 1' + "0" * 400 + "}}": "at_least() takes a finite number",
    '{"rows": {"near_usual": 0}}': "a share above zero",
    '{"": {"at_least": 1}}': "printable characters",
    '{"a\\u0000": {"at_least": 1}}': "printable characters",
    '{"a\\ud800": {"at_least": 1}}': "printable characters",
}


@pytest.mark.parametrize("expect", WRONG_EXPECTATIONS, ids=lambda text: text[:30])
def test_an_expectation_that_is_none_is_refused_in_one_line_while_it_is_written_and_when_it_is_saved(boss, expect):
    said = WRONG_EXPECTATIONS[expect]
    checked = boss.post(url("schedule_check"), FORM | {"expect": expect})
    assert said in checked.context["meaning"].fault
    assert checked.context["meaning"].words
    response = boss.post(url("schedule_save"), FORM | {"expect": expect})
    assert said in response.context["fault"]
    assert "\n" not in response.context["fault"]
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"jitter": "-1"}, "jitter must be"),
        ({"priority": "99999"}, "priority must be"),
        ({"queue": "nowhere"}, "is not declared"),
        ({"type": "marc"}, "Did you mean 'mark'?"),
        ({"payload": '{"label": 7}'}, "The payload does not fit its handler"),
        ({"expect_success_within": "0.5"}, "1 second or more"),
        ({"end_at": "2020-01-01T00:00", "start_at": "2021-01-01T00:00"}, "is before start_at"),
        ({"start_at": "9999-12-31T23:59"}, "between the years 1970 and 9000"),
    ],
    ids=str,
)
def test_whatever_saving_would_refuse_is_said_while_it_is_written(boss, wrong, said):
    assert said in boss.post(url("schedule_check"), FORM | wrong).context["meaning"].fault
    assert said in boss.post(url("schedule_save"), FORM | wrong).context["fault"]
    assert not Schedule.objects.exists()


def test_what_is_not_written_yet_is_no_fault(boss):
    form = FORM | {"name": "", "type": "", "payload": "{}"}
    meaning = boss.post(url("schedule_check"), form).context["meaning"]
    assert (meaning.fault, len(meaning.slots)) == ("", 5)


def test_a_browsers_line_ends_are_no_change(boss, hourly):
    """A payload that nobody touched is not checked, so that an older row can be edited."""
    Schedule.objects.update(payload={"label": 7})
    values = boss.get(url("schedule_form"), {"name": "hourly"}).context["values"]
    form = {name: text.replace("\n", "\r\n") for name, text in values.items()}
    assert form["payload"] != values["payload"]
    assert changed_values(Schedule.objects.get(), form) == {}


def test_an_expectation_that_somebody_broke_by_hand_is_shown(boss, hourly):
    Schedule.objects.update(expect={"rows": "many"})
    assert "{&quot;rows&quot;: &quot;many&quot;}" in boss.get(url("schedule_one"), {"name": "hourly"}).content.decode()
    assert boss.get(url("schedule_form"), {"name": "hourly"}).status_code == 200


@pytest.mark.parametrize(
    ("metrics", "usual", "told"),
    [
        ({"rows": 1234, "note": "x"}, {"rows": 1000.5}, ["rows: 1,234 (usually 1,000.5)", "note: &quot;x&quot;"]),
        ({"rows": 7}, None, ["rows: 7"]),
        ([1], {}, ["[1]"]),
    ],
    ids=str,
)
def test_what_the_last_success_reported_is_told_beside_what_is_usual(boss, hourly, metrics, usual, told):
    Schedule.objects.update(last_metrics=metrics, usual_metrics=usual)
    text = boss.get(url("schedule_one"), {"name": "hourly"}).content.decode()
    for part in told:
        assert part in text
