"""Schedules at run time: made, changed, switched, run now and looked ahead."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

import django_jobs
from django_jobs import (
    create_schedule,
    delete_schedule,
    disable_schedule,
    enable_schedule,
    get_schedule,
    list_schedules,
    preview_schedule,
    run_schedule_now,
    update_schedule,
)
from django_jobs.exceptions import InvalidPayload, InvalidSchedule, ScheduleNotFound, UnknownJobType
from django_jobs.ids import uuid7
from django_jobs.models import Job, Schedule, ScheduleSlot
from django_jobs.operations.slots import record_run_now
from tests.operations import handlers
from tests.operations.schedules import MINUTE, database_now, fire, get, make, slots

pytestmark = pytest.mark.django_db


def create(name="digest", **options):
    options = {"type": handlers.note, "payload": {"text": "x"}, "every": MINUTE} | options
    return create_schedule(name, **options)


def test_a_new_schedule_is_planned_from_now():
    schedule = create()
    assert database_now() - MINUTE < schedule.next_run_at - MINUTE <= database_now()
    assert (schedule.type, schedule.payload, schedule.declared_in_code) == ("operations.note", {"text": "x"}, False)
    assert fire() == 0


def test_a_name_is_taken_once():
    create()
    with pytest.raises(InvalidSchedule, match="is there already"):
        create()
    assert Schedule.objects.count() == 1


def test_it_commits_with_the_callers_transaction():
    class Undo(Exception):
        pass

    def create_and_fail():
        with transaction.atomic():
            create()
            raise Undo

    with pytest.raises(Undo):
        create_and_fail()
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"payload": {"txet": 1}}, InvalidPayload),
        ({"type": "os.system"}, UnknownJobType),
        ({"every": None, "cron": "61 * * * *"}, InvalidSchedule),
        ({"start_at": datetime(2026, 1, 1)}, InvalidSchedule),  # noqa: DTZ001
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_and_nothing_is_written(fault, error):
    with pytest.raises(error):
        create(**fault)
    assert not Schedule.objects.exists()
    create()
    before = get()
    with pytest.raises(error):
        update_schedule("digest", **fault)
    assert get().updated_at == before.updated_at


def test_a_change_of_its_times_starts_from_now():
    make(late=timedelta(days=1), catch_up="all")
    schedule = update_schedule("digest", every=None, cron="0 8 * * *", timezone="Asia/Kolkata")
    assert (schedule.every, schedule.cron) == (None, "0 8 * * *")
    assert schedule.next_run_at > database_now()
    assert fire() == 0


def test_a_change_of_its_job_keeps_its_next_slot():
    before = make(late=timedelta(0)).next_run_at
    schedule = update_schedule("digest", payload={"text": "new"}, priority=3)
    assert (schedule.next_run_at, schedule.payload, schedule.priority) == (before, {"text": "new"}, 3)
    fire()
    assert Job.objects.get().payload == {"text": "new"}


def test_what_is_not_named_stays():
    at = datetime(2026, 5, 1, tzinfo=UTC)
    create(type="operations.order", payload={"id": handlers.UUID(int=1), "at": at, "lines": []}, tenant="acme")
    schedule = update_schedule("digest", jitter=MINUTE)
    assert schedule.payload["at"] == "2026-05-01T00:00:00+00:00"
    assert (schedule.tenant, schedule.jitter) == ("acme", MINUTE)


def test_disabled_and_enabled_again_it_does_not_back_fill():
    make(late=timedelta(days=3), catch_up="all")
    assert disable_schedule("digest").next_run_at is None
    schedule = enable_schedule("digest")
    assert schedule.next_run_at > database_now() - timedelta(seconds=30)
    assert fire() == 0
    assert schedule.enabled_by == "operator"


def test_enabling_what_is_enabled_keeps_its_next_slot():
    before = make(late=timedelta(0)).next_run_at
    assert enable_schedule("digest").next_run_at == before


def test_deleted_it_fires_no_more_and_its_record_stays():
    make(late=timedelta(0))
    fire()
    delete_schedule("digest")
    assert not Schedule.objects.exists()
    assert ScheduleSlot.objects.count() == 1


@pytest.mark.parametrize("act", [delete_schedule, lambda name: update_schedule(name, jitter=MINUTE)])
def test_what_the_code_says_is_changed_in_the_code(act):
    make(declared_in_code=True)
    with pytest.raises(InvalidSchedule, match="declared in code"):
        act("digest")


def test_run_now_enqueues_for_no_slot():
    before = make(late=-MINUTE, enabled=True, queue="bulk").next_run_at
    disable_schedule("digest")
    enqueued = run_schedule_now("digest")
    job = Job.objects.get()
    assert (job.pk, job.queue, job.status, enqueued.status) == (enqueued.id, "bulk", "pending", "pending")
    assert job.context == {"django_jobs.schedule": "digest"}
    assert get().next_run_at is None
    assert before
    assert [(record.outcome, record.job_id) for record in slots()] == [("run_now", enqueued.id)]


def test_run_now_takes_no_slots_place():
    """Not even if it is asked for at the very microsecond of a slot, twice."""
    slot = make(late=timedelta(0)).next_run_at
    jobs = [uuid7() for _ in range(3)]
    for job in jobs:
        record_run_now(get(), slot, job)
    assert fire() == 1
    outcomes = [(record.slot - slot, record.outcome) for record in slots()]
    moment = timedelta(microseconds=1)
    assert outcomes == [(0 * moment, "fired")] + [(number * moment, "run_now") for number in (1, 2, 3)]


def test_a_slot_that_may_not_overlap_waits_for_what_was_run_by_hand():
    make(late=timedelta(0), overlap="skip")
    run_schedule_now("digest")
    fire()
    assert sorted(record.outcome for record in slots()) == ["run_now", "skipped_overlap"]


def test_run_now_is_rolled_back_with_its_record():
    make()
    with transaction.atomic():
        run_schedule_now("digest")
        transaction.set_rollback(True)
    assert (Job.objects.count(), ScheduleSlot.objects.count()) == (0, 0)


def test_run_now_refuses_what_could_not_run():
    make(payload={"nonsense": 1})
    with pytest.raises(InvalidPayload):
        run_schedule_now("digest")


@pytest.mark.parametrize(
    "ask", [get_schedule, delete_schedule, enable_schedule, disable_schedule, run_schedule_now, preview_schedule]
)
def test_an_unknown_name_gets_the_nearest_one(ask):
    make("digest")
    with pytest.raises(ScheduleNotFound, match="Did you mean 'digest'"):
        ask("digets")


def test_all_are_listed_by_name():
    for name in ("b", "a"):
        make(name)
    assert [schedule.pk for schedule in list_schedules()] == ["a", "b"]


def test_a_preview_says_when_and_what_the_clocks_do():
    start = datetime(2026, 10, 31, tzinfo=UTC)
    create(every=None, cron="30 1 * * *", timezone="America/New_York", start_at=start.replace(year=2031, day=31))
    slots = preview_schedule("digest", 4)
    assert [slot.local.strftime("%m-%d %H:%M %Z") for slot in slots] == [
        "10-31 01:30 EDT",
        "11-01 01:30 EDT",
        "11-02 01:30 EDT",
        "11-03 01:30 EST",
    ]
    assert "runs once" in slots[2].note


def test_a_preview_of_an_interval_ends_where_the_schedule_ends():
    end = datetime(2090, 1, 1, 0, 1, tzinfo=UTC)
    create(start_at=end - MINUTE, end_at=end, timezone="Asia/Kolkata")
    slots = preview_schedule("digest", 10)
    assert [slot.local.isoformat() for slot in slots] == ["2090-01-01T05:30:00+05:30", "2090-01-01T05:31:00+05:30"]


def test_a_preview_is_bounded():
    create()
    with pytest.raises(InvalidSchedule, match="1 to 100"):
        preview_schedule("digest", 101)


def test_everything_is_importable_from_the_package():
    assert django_jobs.create_schedule is create_schedule
