"""Firing: a due slot becomes one job, by the schedule's policies, and the record says what became of it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from django_jobs.context import JITTER, SCHEDULE, SLOT
from django_jobs.models import Job, Schedule, ScheduleSlot
from django_jobs.models.schedule import Definition
from django_jobs.operations import slots as slots_module
from django_jobs.operations.firing import SetAside, fire_due, next_look
from django_jobs.operations.timetable import jitter_of
from django_jobs.signals import jobs_enqueued
from tests.operations.schedules import MINUTE, away_from_the_next_minute, fire, get, make, set_next, slots
from tests.operations.support import counting_wakes, on_postgresql, sleeper

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("away_from_the_next_minute")]
__all__ = ["away_from_the_next_minute"]

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_a_due_slot_becomes_a_job_and_the_schedule_moves_on():
    slot = make(late=timedelta(0)).next_run_at
    assert fire() == 1
    (record,) = slots()
    job = Job.objects.get()
    assert (record.slot, record.outcome, record.job_id) == (slot, "fired", job.pk)
    assert (job.type, job.payload, job.status, job.run_at) == ("operations.note", {"text": "digest"}, "pending", slot)
    schedule = get()
    assert (schedule.next_run_at, schedule.last_slot) == (slot + MINUTE, slot)
    assert schedule.now - timedelta(seconds=30) < schedule.last_run_at <= schedule.now


def test_a_slot_that_is_not_due_fires_nothing():
    make(late=-MINUTE * 5)
    assert fire() == 0
    assert not Job.objects.exists()


def test_a_second_look_fires_nothing_more():
    make(late=timedelta(0))
    assert (fire(), fire()) == (1, 0)
    assert Job.objects.count() == 1


def test_the_job_has_the_schedules_options_and_the_types_where_it_has_none():
    make("plain", late=timedelta(0), type="operations.urgent", payload={})
    make("own", late=timedelta(0), queue="bulk", priority=-2, tenant="acme", max_attempts=4)
    fire()
    values = Job.objects.order_by("tenant").values_list("queue", "priority", "tenant", "max_attempts")
    assert list(values) == [("urgent", 5, "", 3), ("bulk", -2, "acme", 4)]


def test_the_job_knows_its_schedule_and_its_slot():
    slot = make(late=timedelta(0), jitter=timedelta(minutes=2)).next_run_at
    fire()
    job = Job.objects.get()
    assert job.context == {SCHEDULE: "digest", SLOT: slot.isoformat(), JITTER: "120.0"}
    assert job.run_at == slot + jitter_of("digest", slot, timedelta(minutes=2))


def test_a_slot_on_record_is_not_fired_again():
    slot = make(late=timedelta(0)).next_run_at
    fire()
    Schedule.objects.update(next_run_at=slot)
    assert fire() == 1
    assert Job.objects.count() == 1
    assert get().next_run_at == slot + MINUTE


def test_a_schedule_that_is_deleted_and_made_again_does_not_fire_its_slot_again():
    slot = make(late=timedelta(0)).next_run_at
    fire()
    Schedule.objects.all().delete()
    make(late=timedelta(0))
    Schedule.objects.update(next_run_at=slot)
    fire()
    assert Job.objects.filter(run_at=slot).count() == 1


# Catch-up


@pytest.mark.parametrize(
    ("policy", "fired", "missed"),
    [
        ({"catch_up": "latest"}, [0], 1),
        ({"catch_up": "skip"}, [0], 1),
        ({"catch_up": "all"}, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], 0),
        ({"catch_up": "all", "catch_up_limit": 3}, [2, 1, 0], 1),
        ({"catch_up": "all", "catch_up_age": MINUTE * 5}, [4, 3, 2, 1, 0], 1),
    ],
    ids=str,
)
def test_after_a_time_without_schedulers_the_policy_decides(policy, fired, missed):
    last = set_next(make(**policy).pk, timedelta(0))
    first = set_next("digest", MINUTE * 9 + (get().now - last))
    fire()
    assert [(last - record.slot) // MINUTE for record in slots(outcome="fired")] == fired
    skipped = slots(outcome="skipped_catch_up")
    assert [(record.slot, record.until) for record in skipped] == [(first, last - MINUTE * fired[0])] * missed
    assert Job.objects.count() == len(fired)
    assert get().next_run_at == last + MINUTE


def test_a_daily_slot_missed_for_hours_is_skipped_where_the_policy_says_so():
    make(catch_up="skip", every=DAY)
    set_next("digest", timedelta(minutes=2))
    fire()
    assert [record.outcome for record in slots()] == ["skipped_catch_up"]
    assert not Job.objects.exists()
    assert get().last_run_at is None


def test_a_schedule_that_ended_fires_its_last_slot_and_no_more():
    slot = make(late=timedelta(0)).next_run_at
    Schedule.objects.update(end_at=slot)
    fire(2)
    set_next("digest", timedelta(0))
    Schedule.objects.update(next_run_at=slot)
    fire(2)
    assert Job.objects.count() == 1
    assert get().next_run_at is None
    assert get().look_at is None


# Overlap


@pytest.mark.parametrize("status", ["scheduled", "pending", "processing"])
def test_a_slot_is_skipped_while_the_job_of_an_earlier_one_is_unfinished(status):
    make(late=timedelta(0), overlap="skip", every=DAY)
    fire()
    Job.objects.update(status=status)
    ScheduleSlot.objects.update(slot=EPOCH)
    set_next("digest", timedelta(0))
    fire()
    assert Job.objects.count() == 1
    assert [record.outcome for record in slots()] == ["fired", "skipped_overlap"]


def test_a_slot_fires_once_the_job_of_the_earlier_one_is_over():
    make(late=timedelta(0), overlap="skip", every=DAY)
    fire()
    Job.objects.all().delete()
    ScheduleSlot.objects.update(slot=EPOCH)
    set_next("digest", timedelta(0))
    fire()
    assert [record.outcome for record in slots()] == ["fired", "fired"]


def test_of_many_slots_caught_up_at_once_one_runs_where_none_may_overlap():
    make(late=MINUTE * 4, overlap="skip", catch_up="all")
    fire()
    outcomes = [record.outcome for record in slots()]
    assert outcomes[0] == "fired"
    assert set(outcomes[1:]) == {"skipped_overlap"}
    assert Job.objects.count() == 1


def test_an_overlap_is_allowed_unless_the_schedule_says_otherwise():
    make(late=MINUTE * 3, catch_up="all")
    fire()
    assert Job.objects.count() >= 3


# Edits: what changes when it fires starts from now


@pytest.mark.parametrize(
    "edit",
    [
        {"cron": "*/5 * * * *", "every": None},
        {"every": timedelta(seconds=30)},
        {"timezone": "Asia/Kolkata"},
        {"start_at": EPOCH},
        {"end_at": datetime(2090, 1, 1, tzinfo=UTC)},
    ],
    ids="+".join,
)
def test_an_update_that_sends_no_signal_starts_from_now(edit):
    make(late=timedelta(days=1), catch_up="all")
    Schedule.objects.update(**edit)
    fire(2)
    assert not Job.objects.exists()
    schedule = get()
    assert schedule.next_run_at > schedule.now - timedelta(seconds=30)
    assert schedule.active_since > schedule.now - timedelta(seconds=30)


def test_disabled_by_sql_right_before_its_slot_it_does_not_fire():
    make(late=timedelta(0))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_jobs_schedule SET enabled = false")
    fire(2)
    assert not Job.objects.exists()
    assert get().look_at is None


def test_enabled_again_after_three_days_it_starts_from_now():
    make(late=timedelta(days=3), catch_up="all")
    Schedule.objects.update(enabled=False)
    fire()
    Schedule.objects.update(enabled=True)
    fire(2)
    assert not Job.objects.exists()
    assert get().next_run_at > get().now - timedelta(seconds=30)


def test_a_new_row_starts_from_now():
    Schedule.objects.create(name="new", type="operations.note", every=MINUTE)
    fire(2)
    assert not Job.objects.exists()
    assert get("new").next_run_at > get("new").now - timedelta(seconds=30)


def test_a_schedule_fires_nothing_before_its_start():
    make(late=timedelta(0))
    start = datetime(2090, 1, 1, 0, 0, 30, tzinfo=UTC)
    Schedule.objects.update(start_at=start)
    fire(2)
    assert not Job.objects.exists()
    assert get().next_run_at == start + timedelta(seconds=30)


# One that cannot fire does not stop the others


@pytest.fixture
def neighbours():
    for name in ("first", "last"):
        make(name, late=timedelta(0))
    return ["first", "last"]


def fired():
    return sorted(Job.objects.values_list("payload__text", flat=True))


def test_an_unknown_type_is_left_to_builds_that_know_it(neighbours):
    before = make("foreign", late=timedelta(0), type="tomorrow.note").next_run_at
    aside = SetAside()
    fire(aside=aside)
    assert fired() == neighbours
    assert (get("foreign").next_run_at, get("foreign").broken) == (before, "")
    assert aside.reasons() == {}
    assert next_look(aside) > 0


@pytest.mark.parametrize(
    "fault",
    [{"payload": {"txet": "x"}}, {"payload": {"text": 1}}, {"queue": "nowhere"}, {"priority": 0, "max_attempts": 0}],
    ids=str,
)
def test_a_job_that_cannot_be_enqueued_is_set_aside(neighbours, fault):
    make("middle", late=timedelta(0), **fault)
    aside = SetAside()
    assert fire(aside=aside) == 3
    assert fired() == neighbours
    assert list(aside.reasons()) == ["middle"]
    assert next_look(aside) > 0


def test_a_cron_expression_that_raises_is_set_aside(neighbours, monkeypatch):
    make("middle", late=timedelta(0), cron="1 1 * * *", every=None)
    plain = slots_module.due_slots

    def raises(schedule, now):
        if schedule.pk == "middle":
            raise OverflowError("date value out of range")
        return plain(schedule, now)

    monkeypatch.setattr(slots_module, "due_slots", raises)
    aside = SetAside()
    fire(aside=aside)
    assert fired() == neighbours
    assert "date value out of range" in aside.reasons()["middle"]


def test_one_that_the_database_refuses_costs_the_others_nothing(neighbours, monkeypatch, caplog):
    make("middle", late=timedelta(0))
    plain = slots_module._enqueue

    def refused(jobs):
        if any('"middle"' in job.payload for job in jobs):
            with connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")
        plain(jobs)

    monkeypatch.setattr(slots_module, "_enqueue", refused)
    aside = SetAside()
    fire(aside=aside)
    assert fired() == neighbours
    assert list(aside.reasons()) == ["middle"]
    assert "each is fired alone" in caplog.text


def test_what_was_set_aside_is_tried_again_after_a_minute(monkeypatch):
    aside = SetAside()
    aside.add("digest", "why")
    make(late=timedelta(0))
    assert fire(aside=aside) == 0
    monkeypatch.setattr("django_jobs.operations.firing.clock.monotonic", lambda: 10**9)
    assert fire(aside=aside) == 1


def test_a_definition_without_a_timetable_is_broken_and_says_why(neighbours):
    Schedule.objects.filter(pk="first").update(cron="99 * * * *", every=None)
    fire()
    assert fired() == ["last"]
    assert "between 0 and 59" in get("first").broken
    assert get("first").look_at is None


def test_a_definition_that_is_mended_starts_from_now():
    make(late=MINUTE)
    Schedule.objects.update(timezone="Mars/Olympus")
    fire()
    assert "Mars/Olympus" in get().broken
    Schedule.objects.update(timezone="UTC")
    fire()
    assert get().broken == ""
    assert get().next_run_at > get().now - timedelta(seconds=30)
    assert not Job.objects.exists()


# Looking


def test_a_look_tells_how_long_until_the_next_slot():
    assert next_look(SetAside()) is None
    make(late=timedelta(0))
    fire()
    assert 0 < next_look(SetAside()) <= 60


def test_a_look_at_schedules_at_rest_is_one_query(django_assert_num_queries):
    make(late=-MINUTE * 5)
    with django_assert_num_queries(1):
        next_look(SetAside())


def test_a_batch_is_bounded_and_the_most_overdue_come_first():
    for number in range(5):
        make(f"s{number}", late=MINUTE * number)
    assert fire_due(SetAside(), limit=2) == 2
    assert fired() == ["s3", "s4"]


@on_postgresql
def test_ten_slots_of_one_queue_wake_a_sleeper_once(django_capture_on_commit_callbacks):
    for number in range(10):
        make(f"s{number}", late=timedelta(0))
    with sleeper(), counting_wakes() as wakes:
        with django_capture_on_commit_callbacks(execute=True):
            fire()
        assert wakes() == 1


@on_postgresql
def test_the_look_uses_its_index():
    Schedule.objects.bulk_create(
        Schedule(name=f"s{number}", type="operations.note", every=MINUTE) for number in range(2000)
    )
    Schedule.objects.update(planned=Definition(), next_run_at=Now())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE django_jobs_schedule")
    plan = (
        Schedule.objects.filter(look_at__isnull=False, type__in=["operations.note"]).order_by("look_at")[:1].explain()
    )
    assert "django_jobs_schedule_look" in plan


def test_fired_jobs_are_announced_after_the_commit(django_capture_on_commit_callbacks):
    heard = []

    def hear(sender, queue, jobs, **more):
        heard.extend((sender.name, queue, job.status) for job in jobs)

    jobs_enqueued.connect(hear)
    make(late=timedelta(0))
    with django_capture_on_commit_callbacks(execute=True):
        fire()
        assert heard == []
    assert heard == [("operations.note", "default", "pending")]
    jobs_enqueued.disconnect(hear)
