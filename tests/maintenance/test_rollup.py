"""Old counts are added up: fewer rows, the same numbers."""

from datetime import timedelta

import pytest
from django.db.models import Sum
from django.utils import timezone

from django_jobs.maintenance.rollup import LEVELS, roll_up
from django_jobs.models import JobCount

pytestmark = pytest.mark.django_db

MINUTES, HOURS = LEVELS
NOW = timezone.now().replace(minute=30, second=10, microsecond=0)


def count(process="p1", outcome="succeeded", number=1, **ago):
    minute = (NOW - timedelta(**ago)).replace(second=0)
    histogram = [number, *[0] * 23]
    return JobCount.objects.create(
        minute=minute,
        process=process,
        queue="default",
        type="noop",
        outcome=outcome,
        count=number,
        total_ms=10 * number,
        histogram=histogram,
    )


def roll_up_all(level):
    while roll_up("default", NOW, level):
        pass


def sums():
    return list(JobCount.objects.order_by("outcome").values_list("outcome").annotate(Sum("count"), ms=Sum("total_ms")))


def test_the_processes_of_a_minute_become_one_row_an_hour_later():
    for process in ("p1", "p2", "p3"):
        count(process, number=5, minutes=70)
        count(process, outcome="dead", minutes=70)
    young = count("p1", minutes=50)
    before = sums()
    roll_up_all(MINUTES)
    assert sums() == before
    assert JobCount.objects.filter(process="").count() == 2
    assert JobCount.objects.get(process="", outcome="succeeded").histogram[0] == 15
    young.refresh_from_db()


def test_the_minutes_of_an_hour_become_one_row_after_two_days():
    for minutes in range(60):
        count(process="", hours=50, minutes=minutes)
    before = sums()
    roll_up_all(HOURS)
    assert sums() == before
    assert JobCount.objects.count() == 2
    assert set(JobCount.objects.values_list("minute__minute", flat=True)) == {0}


def test_what_arrives_late_is_added():
    count("p1", number=5, minutes=70)
    roll_up_all(MINUTES)
    count("p2", number=2, minutes=70)
    roll_up_all(MINUTES)
    row = JobCount.objects.get()
    assert (row.process, row.count, row.total_ms) == ("", 7, 70)


def test_nothing_is_added_up_twice():
    count("p1", minutes=70)
    assert roll_up("default", NOW, MINUTES) == 1
    assert roll_up("default", NOW, MINUTES) == 0
