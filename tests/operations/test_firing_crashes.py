"""Whatever dies, and however many schedulers there are, each slot becomes one job."""

import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F

from django_jobs import clock
from django_jobs.models import Job, Schedule, ScheduleSlot
from django_jobs.operations.firing import SetAside, fire_due, next_look
from tests.operations.schedules import DAY, database_now, fire, make
from tests.operations.support import committing, on_postgresql, start
from tests.process.command import ROOT, environment

pytestmark = committing

SECOND = timedelta(seconds=1)


def fire_and_be_killed(number):
    return subprocess.run(
        [sys.executable, "-m", "tests.operations.firing_until_killed", str(number)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_killed_at_any_statement_nothing_is_fired_twice_nor_lost():
    for name in ("a", "b", "c"):
        make(name, late=timedelta(0), every=DAY, overlap="skip" if name == "b" else "allow")
    for number in range(100):
        run = fire_and_be_killed(number)
        fired = ScheduleSlot.objects.filter(outcome="fired").count()
        assert fired == Job.objects.count() == Schedule.objects.filter(last_slot=F("next_run_at") - DAY).count()
        assert fired in (0, 3), f"killed before statement {number}"
        if run.returncode != -signal.SIGKILL:
            break
    assert run.returncode == 0, run.stderr
    assert number >= 5
    assert Counter(Job.objects.values_list("payload__text", flat=True)) == {"a": 1, "b": 1, "c": 1}


def test_many_schedulers_fire_each_slot_of_each_second_once():
    names = [f"s{number}" for number in range(12)]
    for name in names:
        make(name, every=SECOND, catch_up="all", late=timedelta(0))
    until = time.monotonic() + 4

    def schedule():
        aside = SetAside()
        while time.monotonic() < until:
            if (wait := next_look(aside)) is not None and wait <= 0:
                fire_due(aside, limit=5)
            time.sleep(0.01)  # a scheduler's pause between two looks
        return aside.reasons()

    assert [thread.result(timeout=60) for thread in [start(schedule) for _ in range(6)]] == [{}] * 6
    assert_each_slot_once(names, at_least=3)


def assert_each_slot_once(names, at_least):
    jobs = Counter((job.payload["text"], job.context["django_jobs.slot"]) for job in Job.objects.all())
    assert set(jobs.values()) == {1}
    for name in names:
        slots = list(ScheduleSlot.objects.filter(schedule=name, outcome="fired").order_by("slot"))
        times = [slot.slot for slot in slots]
        assert len(times) >= at_least
        assert times == [times[0] + SECOND * number for number in range(len(times))], "a slot is missing"
    assert ScheduleSlot.objects.count() == Job.objects.count()


@pytest.mark.parametrize("skew", [-30, 30])
def test_the_clock_of_the_scheduler_does_not_matter(monkeypatch, skew):
    plain_now, plain_milliseconds = clock.now, clock.milliseconds
    monkeypatch.setattr(clock, "now", lambda: plain_now() + timedelta(seconds=skew))
    monkeypatch.setattr(clock, "milliseconds", lambda: plain_milliseconds() + skew * 1000)
    make("due", late=timedelta(0), every=DAY)
    make("soon", every=DAY)
    Schedule.objects.filter(pk="soon").update(next_run_at=database_now() + timedelta(seconds=20))
    fire(3)
    assert list(ScheduleSlot.objects.values_list("schedule", flat=True)) == ["due"]
    assert Schedule.objects.get(pk="due").next_run_at == ScheduleSlot.objects.get().slot + DAY


@on_postgresql
def test_a_row_that_somebody_holds_is_passed_over_and_the_others_fire():
    make("held", late=timedelta(0))
    make("free", late=timedelta(0))
    with transaction.atomic():
        Schedule.objects.select_for_update().get(pk="held")
        assert start(fire).result(timeout=20) == 1
    assert list(ScheduleSlot.objects.values_list("schedule", flat=True)) == ["free"]
    fire()
    assert ScheduleSlot.objects.count() == 2
