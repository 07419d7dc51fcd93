"""When a scheduler looks at a schedule: the database decides, whoever wrote the row."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError
from django.db.models.functions import Now

from django_jobs.models import Schedule, ScheduleSlot
from django_jobs.models.schedule import Definition

pytestmark = pytest.mark.django_db

AHEAD = datetime(2090, 1, 1, 8, tzinfo=UTC)


@pytest.fixture
def planned():
    Schedule.objects.create(name="digest", type="noop", cron="0 8 * * *")
    Schedule.objects.update(planned=Definition(), next_run_at=AHEAD)
    return Schedule.objects.filter(name="digest")


def is_looked_at(schedules):
    return schedules.filter(look_at__lte=Now()).exists()


def test_a_new_schedule_is_looked_at_at_once():
    Schedule.objects.create(name="digest", type="noop", cron="0 8 * * *")
    assert is_looked_at(Schedule.objects)


def test_a_planned_schedule_is_looked_at_at_its_next_slot(planned):
    assert planned.get().look_at == AHEAD
    assert not is_looked_at(planned)


@pytest.mark.parametrize(
    "edit",
    [
        {"cron": "0 9 * * *"},
        {"cron": "", "every": timedelta(seconds=10)},
        {"timezone": "Asia/Kolkata"},
        {"enabled": False},
        {"start_at": AHEAD},
        {"end_at": AHEAD},
    ],
    ids="+".join,
)
def test_an_update_that_sends_no_signal_is_looked_at(planned, edit):
    planned.update(**edit)
    assert is_looked_at(planned)
    planned.update(planned=Definition())
    assert not is_looked_at(planned)


def test_an_edit_of_the_job_changes_no_time(planned):
    planned.update(payload={"a": 1}, priority=3, queue="bulk")
    assert planned.get().look_at == AHEAD


@pytest.mark.parametrize("state", [{"broken": "gone"}, {"enabled": False}, {"next_run_at": None}], ids=str)
def test_a_schedule_that_cannot_fire_is_not_looked_at(planned, state):
    planned.update(**state)
    planned.update(planned=Definition())
    assert planned.get().look_at is None


def test_a_schedule_has_a_slot_once():
    ScheduleSlot.objects.create(schedule="digest", slot=AHEAD, outcome="fired")
    with pytest.raises(IntegrityError):
        ScheduleSlot.objects.create(schedule="digest", slot=AHEAD, outcome="skipped_overlap")
