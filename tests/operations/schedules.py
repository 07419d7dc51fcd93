"""Schedules for tests, set on the database's clock: what is due is due for as long as a test says."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from django_jobs.models import Schedule, ScheduleSlot
from django_jobs.models.schedule import Definition
from django_jobs.operations.firing import SetAside, fire_due
from tests.operations import handlers  # noqa: F401 - the types
from tests.waiting import wait_for

MINUTE = timedelta(minutes=1)
LAST_SECONDS = 50
DAY = timedelta(days=1)


def database_now():
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT statement_timestamp()")
            return cursor.fetchone()[0]
        cursor.execute("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0]).replace(tzinfo=UTC)


@pytest.fixture
def away_from_the_next_minute(db):
    """For tests that say what is due and what is not: no slot comes up in the middle of one."""
    wait_for(lambda: database_now().second < LAST_SECONDS, timeout=20)


def make(name="digest", *, late=None, **fields):
    """A schedule that is planned. ``late``: how long ago its next slot was."""
    fields = {"type": "operations.note", "payload": {"text": name}, "every": MINUTE} | fields
    schedule = Schedule.objects.create(name=name, **fields)
    Schedule.objects.filter(pk=name).update(planned=Definition())
    if late is not None:
        set_next(name, late)
    schedule.refresh_from_db()
    return schedule


def set_next(name, late):
    """Plan its next slot for the last one that is at least ``late`` ago."""
    every = Schedule.objects.get(pk=name).every or MINUTE
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    slot = epoch + (database_now() - late - epoch) // every * every
    Schedule.objects.filter(pk=name).update(next_run_at=slot)
    return slot


def fire(times=1, aside=None):
    aside = aside or SetAside()
    return sum(fire_due(aside) for _ in range(times))


def slots(name="digest", outcome=None):
    rows = ScheduleSlot.objects.filter(schedule=name).order_by("slot")
    return list(rows if outcome is None else rows.filter(outcome=outcome))


def get(name="digest"):
    return Schedule.objects.annotate(now=Now()).get(pk=name)
