"""``runjobscheduler`` and ``syncschedules``: real processes, real signals."""

import json
import platform
import random
import signal
import time
from collections import Counter
from datetime import timedelta
from io import StringIO

import django
import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.db import connection

from django_jobs import clock, create_schedule
from django_jobs.models import IdempotencyKey, Job, Leadership, Schedule, ScheduleSlot, Worker
from django_jobs.models.partitions import leaf_name, missing_partitions
from django_jobs.operations import declared_schedules as module
from django_jobs.operations.declared_schedules import DeclaredSchedules
from django_jobs.operations.schedule_spec import make_spec
from tests.app.jobs import mark, mark_atomic
from tests.factories import IdempotencyKeyFactory, JobFactory
from tests.process.conftest import QUICK
from tests.process.test_probes import ask, port_of
from tests.waiting import wait_for

SECOND = timedelta(seconds=1)


def fired():
    return ScheduleSlot.objects.filter(outcome="fired")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_fires_without_running_jobs_until_a_signal(start_scheduler, number):
    create_schedule("tick", type=mark, payload={"label": "x"}, every=SECOND)
    scheduler = start_scheduler()
    wait_for(lambda: fired().count() >= 2, timeout=30)
    scheduler.send(number)
    assert scheduler.wait() == 0
    assert set(Job.objects.values_list("status", "attempts")) == {("pending", 0)}
    worker = Worker.objects.get(pid=scheduler.pid)
    assert (worker.queues, worker.stopped_at is None) == ([], False)
    assert (worker.django_version, worker.python_version) == (django.get_version(), platform.python_version())
    assert "Stop it with Ctrl-C" in scheduler.output


def test_its_probes_tell_that_it_turns_over_and_reaches_the_database(start_scheduler):
    scheduler = start_scheduler("--health-port", "0")
    port = port_of(scheduler)
    assert ask(port, "/live")[0] == 200
    status, vitals = ask(port, "/ready")
    assert (status, vitals["live"], vitals["running"]) == (200, True, 0)


def test_a_port_that_is_taken_is_refused_without_a_traceback(start_scheduler):
    port = port_of(start_scheduler("--health-port", "0"))
    second = start_scheduler("--health-port", str(port), wait=False)
    assert second.wait() == 1
    assert "No probes can be served on port" in second.output
    assert "Traceback" not in second.output


def test_it_also_stages_delayed_jobs(start_scheduler):
    mark.using(delay=SECOND).enqueue(label="later")
    start_scheduler()
    wait_for(lambda: Job.objects.get().status == "pending", timeout=30)


def test_alone_it_rescues_makes_partitions_and_removes_what_is_too_old(start_scheduler):
    lost = JobFactory(lapsed=True)
    IdempotencyKeyFactory(expired=True)
    IdempotencyKeyFactory()
    tomorrow = clock.now().date() + timedelta(days=1)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {leaf_name(tomorrow)}")
    start_scheduler(**QUICK)
    wait_for(lambda: Job.objects.get(pk=lost.pk).lost_runs == 1, timeout=30)
    wait_for(lambda: IdempotencyKey.objects.count() == 1, timeout=30)
    if connection.vendor == "postgresql":
        wait_for(lambda: not missing(tomorrow), timeout=30)


def missing(day):
    with connection.cursor() as cursor:
        return missing_partitions(cursor, [day])[1]


def test_killed_again_and_again_every_slot_of_every_second_is_fired_once(start_scheduler):
    names = [f"s{number}" for number in range(10)]
    for name in names:
        create_schedule(name, type=mark, payload={"label": name}, every=SECOND, catch_up="all")
    schedulers = [start_scheduler() for _ in range(3)]
    dice = random.Random(7)
    for _ in range(5):
        victim = schedulers.pop(dice.randrange(3))
        before = fired().count()
        wait_for(lambda count=before: fired().count() > count + 5, timeout=60)
        time.sleep(dice.random() / 20)  # dies anywhere in its turn
        victim.end()
        schedulers.append(start_scheduler(wait=False))
    count = fired().count()
    wait_for(lambda: fired().count() >= count + 30, timeout=60)
    for scheduler in schedulers:
        scheduler.end()
    assert_every_slot_once(names)


def assert_every_slot_once(names):
    slots = {
        name: list(fired().filter(schedule=name).order_by("slot").values_list("slot", flat=True)) for name in names
    }
    for name, times in slots.items():
        assert times == [times[0] + SECOND * number for number in range(len(times))], name
    jobs = Counter(Job.objects.values_list("payload__label", "run_at"))
    assert set(jobs.values()) == {1}
    assert set(jobs) == {(name, slot) for name, times in slots.items() for slot in times}


def test_two_releases_side_by_side_fire_what_each_of_them_knows(start_scheduler):
    create_schedule("old", type=mark, payload={"label": "old"}, every=SECOND, catch_up="all")
    create_schedule("new", type=mark_atomic, payload={"label": "new"}, every=SECOND, catch_up="all")
    start_scheduler(module="tests.process.old_release")
    wait_for(lambda: fired().filter(schedule="old").count() >= 2, timeout=30)
    assert not fired().filter(schedule="new").exists()
    new = start_scheduler()
    for name in ("new", "old"):
        count = fired().filter(schedule=name).count()
        wait_for(lambda name=name, count=count: fired().filter(schedule=name).count() >= count + 3, timeout=60)
    new.end()
    count = fired().filter(schedule="old").count()
    wait_for(lambda: fired().filter(schedule="old").count() >= count + 2, timeout=60)
    assert_every_slot_once(["old", "new"])
    assert set(Schedule.objects.values_list("broken", flat=True)) == {""}


def test_an_edit_is_seen_within_five_seconds(start_scheduler):
    create_schedule("tick", type=mark, payload={"label": "x"}, cron="@yearly")
    start_scheduler()
    wait_for(Worker.objects.exists, timeout=30)
    Schedule.objects.update(cron="", every=SECOND)
    began = time.monotonic()
    wait_for(lambda: fired().exists(), timeout=30)
    assert time.monotonic() - began < 10, "5 seconds, and patience with a busy machine"


def test_an_edit_is_seen_within_five_seconds_where_only_a_follower_knows_the_type(start_scheduler):
    create_schedule("new", type=mark_atomic, payload={"label": "new"}, cron="@yearly")
    old = start_scheduler(module="tests.process.old_release")
    wait_for(lambda: leads(old), timeout=30)
    new = start_scheduler()
    wait_for(Worker.objects.filter(pid=new.pid).exists, timeout=30)
    for _ in range(2):
        Schedule.objects.update(cron="", every=SECOND)
        count, began = fired().count(), time.monotonic()
        wait_for(lambda count=count: fired().count() > count, timeout=40)
        assert time.monotonic() - began < 10, "5 seconds, and patience with a busy machine"
        Schedule.objects.update(cron="@yearly", every=None)
        wait_for(lambda: Schedule.objects.get().next_run_at.month == 1, timeout=40)
    assert leads(old)


def leads(process):
    return Worker.objects.filter(pid=process.pid, pk__in=Leadership.objects.values("holder")).exists()


def test_the_help_teaches_what_it_is_for():
    command = load_command_class(get_commands()["runjobscheduler"], "runjobscheduler")
    text = command.create_parser("manage.py", "runjobscheduler").format_help()
    for word in ("--no-scheduler", "two or more", "SIGTERM", "Exit codes", "fired once"):
        assert word in text


@pytest.fixture
def declare(monkeypatch):
    declared = DeclaredSchedules()
    monkeypatch.setattr(module, "declared_schedules", declared)

    def declare(name, type="mark"):
        declared.add(make_spec(name, type, {"label": name}, {"every": SECOND}))

    return declare


def sync(*arguments):
    out = StringIO()
    call_command("syncschedules", *arguments, stdout=out, skip_checks=True)
    return out.getvalue()


def test_syncing_tells_what_it_did(declare):
    assert sync() == "No schedules are declared in code.\n"
    declare("digest")
    assert json.loads(sync("--dry-run", "--format", "json")) == [{"name": "digest", "action": "created", "detail": ""}]
    assert not Schedule.objects.exists()
    assert sync() == "digest: created\n"
    assert sync() == "digest: unchanged\n"


def test_a_wrong_declaration_is_an_exit_code_and_the_others_are_synced(declare):
    declare("wrong", type="nothing")
    declare("fine")
    with pytest.raises(CommandError, match="wrong"):
        sync()
    assert [schedule.pk for schedule in Schedule.objects.all()] == ["fine"]
