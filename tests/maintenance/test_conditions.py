"""What the watcher looks for: found when it holds, and not when it does not."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_jobs import at_least, near_usual
from django_jobs import job as declare
from django_jobs.conf import get_settings
from django_jobs.maintenance.conditions import View, all_conditions
from django_jobs.maintenance.conditions import queues as queue_conditions
from django_jobs.maintenance.conditions.finding import in_words
from django_jobs.models import Alert, Bookmark, Job, JobCount, Queue, Schedule, TypeRecord
from django_jobs.models.partitions import leaf_name
from django_jobs.operations.dead_group_counts import fold_changes
from django_jobs.registry import registry
from tests.engines.support import another_connection
from tests.factories import DeadJobFactory, JobFactory, QueueFactory, WorkerFactory
from tests.operations.support import committing, on_postgresql, sleeper
from tests.waiting import wait_for

pytestmark = committing


def ago(**duration):
    return timezone.now() - timedelta(**duration)


@pytest.fixture
def find():
    """Subject to summary of what a condition finds now."""
    conditions = all_conditions()

    def find(name, now=None):
        view = View(alias="default", now=now or timezone.now(), settings=get_settings())
        return {finding.subject: finding.summary for finding in conditions[name](view)}

    return find


@pytest.fixture(autouse=True)
def read_the_history_until_now():
    Bookmark.objects.create(name="observer", at=timezone.now() + timedelta(seconds=30))


@pytest.fixture
def job():
    before = dict(registry._by_name)
    yield declare
    registry._by_name = before


# Silence


def schedule(**changes):
    values = {
        "name": "nightly",
        "type": "noop",
        "cron": "0 3 * * *",
        "active_since": ago(days=9),
        "next_run_at": timezone.now(),
        "expect_success_within": timedelta(hours=25),
    }
    return Schedule.objects.create(**values | changes)


def test_a_schedule_that_has_not_succeeded_for_too_long_is_overdue(find):
    schedule(last_success_at=ago(hours=26))
    assert find("overdue_success") == {"schedule nightly": "No success for 1 d 2 h; expected within 1 d 1 h."}


@pytest.mark.parametrize(
    "changes",
    [
        {"last_success_at": ago(hours=24)},
        {"active_since": ago(hours=24)},
        {"enabled": False},
        {"broken": "no such type"},
        {"next_run_at": None},
        {"expect_success_within": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_schedule_is_not_overdue_without_reason(find, changes):
    schedule(**{"last_success_at": ago(hours=26)} | changes)
    assert find("overdue_success") == {}


def test_a_schedule_that_never_succeeded_is_overdue_since_it_is_active(find):
    schedule(last_success_at=None)
    assert "never, since it is watched" in find("overdue_success")["schedule nightly"]


def test_silence_is_measured_as_far_as_the_history_has_been_read(find):
    schedule(last_success_at=ago(hours=26))
    Bookmark.objects.update(at=ago(hours=2))
    assert find("overdue_success") == {"observer": "The history has not been read for 2 h; successes are not seen."}


def test_a_type_may_declare_what_it_expects(find, job):
    @job("sync", expect_success_within=timedelta(hours=1), expect={"rows": at_least(1)})
    def sync(): ...

    TypeRecord.objects.create(
        type="sync", watched_since=ago(days=1), last_success_at=ago(hours=2), last_metrics={"rows": 0}
    )
    assert find("overdue_success") == {"type sync": "No success for 2 h; expected within 1 h."}
    assert find("unexpected_metrics") == {"type sync": "Succeeded, but rows is 0, below 1."}


def test_strange_numbers_of_a_success_are_told(find):
    expect = {"rows": near_usual(0.5).as_json(), "files": at_least(1).as_json()}
    fine = {"rows": 90, "files": 3}
    schedule(expect=expect, last_success_at=ago(hours=1), last_metrics=fine, usual_metrics={"rows": 100})
    assert find("unexpected_metrics") == {}
    Schedule.objects.update(last_metrics={"rows": 10})
    assert find("unexpected_metrics") == {
        "schedule nightly": "Succeeded, but rows is 10, not within 50% of the usual 100; files was not reported."
    }


def test_an_expectation_that_nobody_understands_is_told_and_stops_no_other(find):
    schedule(name="a", expect={"rows": {"at_most": 5}}, last_success_at=ago(hours=1))
    schedule(name="b", expect={"rows": {"at_least": 5}}, last_success_at=ago(hours=1))
    assert sorted(find("unexpected_metrics")) == ["schedule a", "schedule b"]


def test_a_broken_schedule_is_told_with_its_reason(find):
    schedule(broken="no handler is registered as 'noop'")
    schedule(name="fine")
    assert find("broken_schedule") == {"schedule nightly": "It does not fire: no handler is registered as 'noop'"}


# Dead jobs


def test_a_new_group_of_dead_jobs_is_told_with_its_error(find):
    for minutes in (30, 20, 10):
        DeadJobFactory(type="pay", fingerprint="1:aa", failed_at=ago(minutes=minutes))
    DeadJobFactory(type="pay", fingerprint="1:bb", failed_at=ago(days=2))
    DeadJobFactory(type="pay", fingerprint="1:bb", failed_at=ago(minutes=1))
    fold_changes()
    assert find("new_dead_group") == {
        "pay 1:aa": "New kind of dead job: pay, 3 so far: ValueError: no such invoice",
    }


def test_a_group_that_comes_again_after_it_was_emptied_is_not_new(find):
    first = DeadJobFactory(type="pay", fingerprint="1:aa", failed_at=ago(days=2))
    fold_changes()
    first.delete()
    fold_changes()
    DeadJobFactory(type="pay", fingerprint="1:aa", failed_at=ago(minutes=1))
    fold_changes()
    assert find("new_dead_group") == {}


def test_a_new_group_that_was_dealt_with_is_no_longer_told(find):
    dead = DeadJobFactory(type="pay", fingerprint="1:aa", failed_at=ago(minutes=1))
    fold_changes()
    assert len(find("new_dead_group")) == 1
    dead.delete()
    fold_changes()
    assert find("new_dead_group") == {}


def count(outcome, number, type_name="pay", **duration):
    JobCount.objects.create(
        minute=ago(**duration or {"minutes": 3}),
        process=f"{outcome} {duration}",
        queue="default",
        type=type_name,
        outcome=outcome,
        count=number,
        total_ms=0,
        histogram=[],
    )


@pytest.mark.parametrize(
    ("dead", "succeeded", "told"),
    [(5, 20, True), (5, 21, False), (4, 0, False), (50, 0, True), (0, 100, False)],
)
def test_the_share_of_jobs_that_die_is_told_from_a_fifth_and_five_on(find, dead, succeeded, told):
    count("dead", dead)
    count("succeeded", succeeded)
    count("dead", 1000, minutes=20)
    count("retrying", 1000)
    assert (find("dead_rate") != {}) == told


def test_lost_leases_are_added_up_over_all_types(find):
    count("lost", 3)
    assert find("lost_leases") == {}
    count("lost", 2, type_name="sync")
    assert find("lost_leases") == {"leases": "5 runs lost their lease in 15 minutes."}


# Queues


def test_the_oldest_job_of_any_priority_is_found(find):
    JobFactory(queue="bulk", priority=9, run_at=ago(minutes=1))
    JobFactory(queue="bulk", priority=0, run_at=ago(minutes=20))
    JobFactory(queue="default", priority=0, run_at=ago(minutes=10))
    JobFactory(queue="urgent", lost_runs=1, run_at=ago(hours=2))
    JobFactory(queue="default", scheduled=True)
    assert find("oldest_job") == {
        "queue bulk": "The oldest ready job of queue bulk has waited for 20 min.",
        "queue urgent": "The oldest ready job of queue urgent has waited for 2 h.",
    }


def test_a_paused_queue_may_wait(find):
    JobFactory(queue="bulk", run_at=ago(hours=1))
    QueueFactory(name="bulk", paused=True)
    assert (find("oldest_job"), find("unserved_queue")) == ({}, {})
    Queue.objects.update(resume_at=ago(seconds=1))
    assert "queue bulk" in find("oldest_job")


@pytest.mark.parametrize(
    ("worker", "served"),
    [
        ({}, True),
        ({"last_seen_at": ago(minutes=2)}, False),
        ({"stopped_at": ago(seconds=1)}, False),
        ({"queues": [{"queues": ["default"], "slots": 5}]}, False),
        ({"queues": []}, False),
    ],
    ids=str,
)
def test_a_queue_that_no_living_worker_serves_is_told(find, worker, served):
    JobFactory(queue="bulk", run_at=ago(minutes=2))
    WorkerFactory(**{"queues": [{"queues": ["bulk", "default"], "slots": 5}]} | worker)
    assert (find("unserved_queue") == {}) == served


def test_a_worker_has_a_minute_to_come(find):
    JobFactory(queue="bulk", run_at=ago(seconds=50))
    assert find("unserved_queue") == {}


def test_a_queue_that_grows_steadily_is_told_and_one_that_wobbles_is_not(find, monkeypatch):
    depths = {"default": 0, "bulk": 0}
    monkeypatch.setattr(queue_conditions, "_depth", lambda view, queue: depths[queue])
    JobFactory(queue="default")
    JobFactory(queue="bulk")
    start = timezone.now()
    for minute in range(12):
        depths |= {"default": 1000 + 100 * minute, "bulk": 5000 + 2000 * (minute % 2)}
        found = find("queue_trend", now=start + timedelta(minutes=minute))
    assert found == {"queue default": "Queue default grows: from 1000 to 2100 ready jobs in 11 min."}
    Job.objects.all().delete()
    for minute in range(12, 40):
        found = find("queue_trend", now=start + timedelta(minutes=minute))
    assert found == {}


def test_a_new_leader_goes_on_with_what_the_alert_holds(find, monkeypatch):
    """Otherwise each deploy would end the alert and ring again."""
    depth = [0]
    monkeypatch.setattr(queue_conditions, "_depth", lambda view, queue: depth[0])
    JobFactory(queue="bulk")
    start = timezone.now()
    leaders = [queue_conditions.QueueTrend(), queue_conditions.QueueTrend()]
    for minute in range(12):
        depth[0] = 1000 + 100 * minute
        view = View(alias="default", now=start + timedelta(minutes=minute), settings=get_settings())
        found = list(leaders[minute // 11](view))
        for finding in found:
            values = {"severity": finding.severity, "details": finding.details}
            Alert.objects.update_or_create(condition="queue_trend", subject=finding.subject, defaults=values)
    assert [finding.subject for finding in found] == ["queue bulk"]


def test_a_depth_is_counted_to_a_bound(find, monkeypatch):
    monkeypatch.setattr(queue_conditions, "COUNTED", 3)
    JobFactory.create_many(5, queue="bulk")
    view = View(alias="default", now=timezone.now(), settings=get_settings())
    assert queue_conditions._depth(view, "bulk") == 3


# The server


@on_postgresql
def test_an_old_transaction_is_told_with_who_holds_it(find, settings):
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"ALERT_OLD_TRANSACTION": 0.01}
    with another_connection(application_name="report") as other:
        other.execute("SELECT 1")
        subject = f"pid {other.info.backend_pid}"
        wait_for(lambda: subject in find("old_transaction"))
        assert "(report), idle in transaction" in find("old_transaction")[subject]
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"ALERT_OLD_TRANSACTION": 3600}
    assert find("old_transaction") == {}


@on_postgresql
def test_a_sleeping_worker_that_stands_still_under_a_flood_of_notifications_is_told(find, settings):
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"ALERT_OLD_TRANSACTION": 0.01}
    with sleeper() as stopped, connection.cursor() as cursor:
        pid = stopped._connection.info.backend_pid
        many = "SELECT pg_notify(%s, i || repeat('x', 7000)) FROM generate_series(1, 500) i"
        cursor.execute(many, [f"django_jobs_{pid}"])
        wait_for(lambda: f"pid {pid}" in find("old_transaction"))
        assert find("old_transaction")[f"pid {pid}"].endswith("idle. Dead rows stay meanwhile.")


@on_postgresql
def test_dead_rows_of_the_jobs_table_are_told(find, settings):
    JobFactory.create_many(50)
    Job.objects.all().delete()
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"ALERT_DEAD_TUPLES": 10}
    wait_for(lambda: "django_jobs_job" in find("dead_tuples"), timeout=30, message="the server's statistics")
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"ALERT_DEAD_TUPLES": 10**9}
    assert find("dead_tuples") == {}


@on_postgresql
def test_a_missing_partition_is_told_with_the_sql_that_makes_it(find):
    tomorrow = timezone.now().date() + timedelta(days=1)
    name = leaf_name(tomorrow)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {name}")
        view = View(alias="default", now=timezone.now(), settings=get_settings())
        (finding,) = all_conditions()["missing_partition"](view)
        assert (finding.subject, finding.severity) == (f"day {tomorrow}", "critical")
        cursor.execute(finding.details["sql"])
    assert find("missing_partition") == {}


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(seconds=40), "40 s"),
        (timedelta(minutes=5), "5 min"),
        (timedelta(hours=25), "1 d 1 h"),
        (timedelta(hours=1, seconds=90), "1 h 1 min"),
        (timedelta(0), "0 s"),
    ],
)
def test_durations_are_told_roughly(duration, words):
    assert in_words(duration) == words
