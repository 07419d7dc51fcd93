"""Retention: what is too old goes, in small batches; what may still be needed stays."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_jobs import enqueue
from django_jobs.conf import get_settings
from django_jobs.ids import uuid7_at
from django_jobs.maintenance import pruning
from django_jobs.maintenance.pruner import Pruner
from django_jobs.models import (
    Alert,
    AuditEntry,
    BulkOperation,
    DeadGroup,
    DeadGroupHour,
    DeadJob,
    Effect,
    IdempotencyKey,
    JobCount,
    JobHistory,
    ScheduleSlot,
    Worker,
)
from django_jobs.models.old_partitions import MARK
from django_jobs.models.partitions import add_partitions, leaf_name
from tests.engines.support import another_connection
from tests.factories import (
    DeadJobFactory,
    IdempotencyKeyFactory,
    JobCountFactory,
    JobFactory,
    JobHistoryFactory,
    WorkerFactory,
)
from tests.operations.support import committing, finish, on_postgresql, on_sqlite

pytestmark = committing

DAY = timedelta(days=1)


@pytest.fixture
def prune():
    def prune(turns=1):
        pruner = Pruner(get_settings())
        for _ in range(turns):
            pruner.run_once(None)
        return pruner

    return prune


@pytest.fixture
def configure(settings):
    def configure(**more):
        settings.DJANGO_JOBS = settings.DJANGO_JOBS | more

    return configure


def ago(**duration):
    return timezone.now() - timedelta(**duration)


def old_id(**duration):
    return uuid7_at(ago(**duration))


def add_leaves(*days):
    """Partitions of days so long ago, where there are partitions."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            add_partitions(cursor, [ago(days=days).date() for days in days])
            cursor.execute("COMMIT")


def sql(statement, *params):
    """On a cursor of its own: a service closes the thread's connection when it has done its work."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def leaves():
    """The names of the partitions; those of the past are gone after the test."""
    yield attached
    for name in attached():
        if name < leaf_name(ago(days=1).date()):
            sql(f"DROP TABLE {name}")


def attached():
    query = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'django_jobs_job_history'::regclass"
    return {name for (name,) in sql(query)}


def options_of(name):
    ((options,),) = sql("SELECT reloptions FROM pg_class WHERE relname = %s", name)
    return set(options)


def leaf(**duration):
    return leaf_name(ago(**duration).date())


def test_history_older_than_a_month_goes_and_the_rest_stays(prune, request):
    if connection.vendor == "postgresql":
        request.getfixturevalue("leaves")
    add_leaves(33, 32, 29)
    kept = [JobHistoryFactory(id=old_id(days=days)).pk for days in (29, 0)]
    for days in (33, 32):
        JobHistoryFactory(id=old_id(days=days))
    prune(turns=3)
    assert set(JobHistory.objects.values_list("pk", flat=True)) == set(kept)


def test_a_retention_of_none_keeps_everything(prune, configure, request):
    if connection.vendor == "postgresql":
        request.getfixturevalue("leaves")
    add_leaves(400)
    configure(HISTORY_RETENTION=None, COUNT_RETENTION=None, SLOT_RETENTION=None, ALERT_RETENTION=None)
    JobHistoryFactory(id=old_id(days=400))
    ScheduleSlot.objects.create(schedule="s", slot=ago(days=400), outcome="fired", at=ago(days=400))
    prune()
    assert JobHistory.objects.count() == ScheduleSlot.objects.count() == 1


@on_sqlite
def test_without_partitions_rows_go_in_batches(prune, monkeypatch):
    monkeypatch.setattr(pruning, "BATCH", 3)
    for _ in range(8):
        JobHistoryFactory(id=old_id(days=40))
    pruner = prune()
    assert (JobHistory.objects.count(), pruner.pause) == (5, Pruner.between_batches)
    pruner.run_once(None)
    pruner.run_once(None)
    assert JobHistory.objects.count() == 0
    pruner.run_once(None)
    assert pruner.pause == Pruner.rest


def test_dead_jobs_are_kept_until_somebody_acts(prune):
    DeadJobFactory(failed_at=ago(days=4000))
    prune()
    assert DeadJob.objects.count() == 1


def test_dead_jobs_are_given_up_where_that_is_configured(prune, configure):
    configure(DEAD_RETENTION=100 * DAY)
    old, young = DeadJobFactory(failed_at=ago(days=101)), DeadJobFactory(failed_at=ago(days=99))
    prune()
    assert list(DeadJob.objects.all()) == [young]
    assert JobHistory.objects.get(job_id=old.pk).status == "discarded"


def test_expired_keys_go_unless_their_job_is_unfinished_or_dead(prune):
    IdempotencyKeyFactory(key="over", expired=True)
    IdempotencyKeyFactory(key="unfinished", expired=True, job_id=JobFactory().pk)
    IdempotencyKeyFactory(key="dead", expired=True, job_id=DeadJobFactory().pk)
    IdempotencyKeyFactory(key="valid")
    prune()
    assert sorted(IdempotencyKey.objects.values_list("key", flat=True)) == ["dead", "unfinished", "valid"]


def test_a_key_that_is_taken_anew_while_it_is_being_removed_stays(monkeypatch):
    IdempotencyKeyFactory(key="order-1", expired=True)
    delete = pruning._delete

    def taken_between_reading_and_deleting(chosen, still):
        keys = list(chosen.values_list("pk", flat=True))
        IdempotencyKey.objects.update(expires_at=timezone.now() + DAY)
        return delete(IdempotencyKey.objects.filter(pk__in=keys), still)

    monkeypatch.setattr(pruning, "_delete", taken_between_reading_and_deleting)
    assert pruning.idempotency_keys("default", timezone.now()) == 0
    assert IdempotencyKey.objects.count() == 1


def test_effects_of_jobs_that_are_over_go_a_day_later(prune):
    unfinished, dead = JobFactory(id=old_id(days=9)), DeadJobFactory(id=old_id(days=9))
    for job_id in (unfinished.pk, dead.pk, old_id(days=9), old_id(hours=1)):
        Effect.objects.create(job_id=job_id, name="receipt")
    prune()
    assert Effect.objects.filter(job_id__in=[unfinished.pk, dead.pk]).count() == 2
    assert Effect.objects.count() == 3


def test_workers_not_seen_for_a_day_go(prune):
    WorkerFactory(last_seen_at=ago(hours=25))
    seen = WorkerFactory(last_seen_at=ago(hours=23))
    prune()
    assert list(Worker.objects.all()) == [seen]


def test_a_slot_stays_while_its_job_is_unfinished(prune):
    """A slot that may not overlap asks for it."""
    unfinished = JobFactory().pk
    for number, job_id in enumerate([unfinished, old_id(days=91), None]):
        ScheduleSlot.objects.create(
            schedule="s", slot=ago(days=91, seconds=number), outcome="fired", at=ago(days=91), job_id=job_id
        )
    prune()
    assert list(ScheduleSlot.objects.values_list("job_id", flat=True)) == [unfinished]


def test_what_people_did_is_kept_for_a_year(prune, configure):
    for days in (366, 364):
        at = ago(days=days)
        AuditEntry.objects.create(
            id=uuid7_at(at), at=at, actor="ada", source="code", action="pause", target_id=f"{days}"
        )
        BulkOperation.objects.create(kind="retry", filter={}, state="done", finished_at=at, requested_by=f"{days}")
    BulkOperation.objects.create(kind="retry", filter={}, state="canary", created_at=ago(days=4000))
    configure(AUDIT_RETENTION=None)
    prune()
    assert AuditEntry.objects.count() == 2
    configure(AUDIT_RETENTION=365 * DAY)
    prune()
    assert list(AuditEntry.objects.values_list("target_id", flat=True)) == ["364"]
    assert sorted(BulkOperation.objects.values_list("requested_by", "state")) == [("", "canary"), ("364", "done")]


def test_hours_and_groups_of_dead_jobs_that_nobody_asks_for_go(prune):
    for name, count, days in (("old", 0, 200), ("kept", 1, 200), ("young", 0, 100)):
        DeadGroup.objects.create(
            type=name, fingerprint="1:aa", count=count, first_seen=ago(days=days), last_seen=ago(days=days)
        )
        DeadGroupHour.objects.create(type=name, fingerprint="1:aa", hour=ago(days=days // 25))
    prune()
    assert set(DeadGroup.objects.values_list("type", flat=True)) == {"kept", "young"}
    assert list(DeadGroupHour.objects.values_list("type", flat=True)) == ["young"]


@on_postgresql
def test_a_row_that_somebody_has_locked_holds_up_its_batch_for_two_seconds_and_nothing_else(prune):
    WorkerFactory(last_seen_at=ago(hours=25))
    Alert.objects.create(condition="c", subject="a", severity="error", state="resolved", resolved_at=ago(days=91))
    with another_connection() as other:
        other.execute("SELECT * FROM django_jobs_worker FOR UPDATE")
        began = time.monotonic()
        prune()
        assert time.monotonic() - began < 30
        assert (Worker.objects.count(), Alert.objects.count()) == (1, 0)
    prune()
    assert Worker.objects.count() == 0


def test_slots_and_resolved_alerts_go_after_three_months(prune):
    for days in (91, 89):
        ScheduleSlot.objects.create(schedule="s", slot=ago(days=days), outcome="fired", at=ago(days=days))
        Alert.objects.create(
            condition="c", subject=f"{days}", severity="error", state="resolved", resolved_at=ago(days=days)
        )
    Alert.objects.create(condition="c", subject="live", severity="error", opened_at=ago(days=400))
    prune()
    assert ScheduleSlot.objects.count() == 1
    assert sorted(Alert.objects.values_list("subject", flat=True)) == ["89", "live"]


def test_counts_go_after_three_months(prune):
    for days in (91, 89):
        JobCountFactory(minute=ago(days=days), count=days)
    prune()
    assert [row.count for row in JobCount.objects.all()] == [89]


def test_of_every_table_a_turn_removes_a_batch_and_the_next_comes_soon(prune, monkeypatch):
    monkeypatch.setattr(pruning, "BATCH", 2)
    for number in range(5):
        IdempotencyKeyFactory(expired=True)
        Effect.objects.create(job_id=old_id(days=9), name="receipt")
        JobCountFactory(minute=ago(days=91, minutes=number))
        ScheduleSlot.objects.create(schedule="s", slot=ago(days=91, minutes=number), outcome="fired", at=ago(days=91))
        Alert.objects.create(
            condition="c", subject=f"{number}", severity="error", state="resolved", resolved_at=ago(days=91)
        )
    tables = (IdempotencyKey, Effect, JobCount, ScheduleSlot, Alert)
    pruner = prune()
    assert [table.objects.count() for table in tables] == [3] * 5
    assert pruner.pause == Pruner.between_batches
    for left in (1, 0):
        pruner.run_once(None)
        assert [table.objects.count() for table in tables] == [left] * 5
    pruner.run_once(None)
    assert pruner.pause == Pruner.rest


def test_a_task_that_fails_does_not_stop_the_others(prune, monkeypatch, caplog):
    def broken(alias, now):
        raise RuntimeError("bug")

    monkeypatch.setattr(pruning, "idempotency_keys", broken)
    WorkerFactory(last_seen_at=ago(hours=25))
    prune()
    assert not Worker.objects.exists()
    assert "idempotency keys" in caplog.text


# Partitions


@on_postgresql
def test_whole_days_are_dropped_one_in_a_turn_the_oldest_first(prune, leaves):
    add_leaves(34, 33, 32, 31, 30, 29)
    pruner = prune()
    assert leaf(days=34) not in leaves()
    assert leaf(days=33) in leaves()
    assert pruner.pause == Pruner.between_batches
    for _ in range(4):
        pruner.run_once(None)
    assert {leaf(days=days) for days in (34, 33, 32, 31)} & leaves() == set()
    assert {leaf(days=30), leaf(days=29)} <= leaves()
    pruner.run_once(None)
    assert pruner.pause == Pruner.rest


@on_postgresql
def test_a_long_reader_of_the_history_delays_the_dropping_and_no_job(prune, leaves):
    add_leaves(40)
    JobHistoryFactory(id=old_id(days=40))
    with another_connection() as reader:
        reader.execute("SELECT count(*) FROM django_jobs_job_history")
        pruning_thread = threading.Thread(target=prune)
        pruning_thread.start()
        slowest, end = 0.0, time.monotonic() + 30
        while pruning_thread.is_alive() and time.monotonic() < end:
            start = time.monotonic()
            enqueue("mark", {"label": "x"})
            finish()
            slowest = max(slowest, time.monotonic() - start)
        pruning_thread.join()
        assert slowest < 1.5, "jobs waited for the lock of the detaching"
        assert leaf(days=40) in leaves()
    prune()
    assert leaf(days=40) not in leaves()
    assert JobHistory.objects.filter(pk__lt=old_id(days=39)).count() == 0


@on_postgresql
def test_what_was_detached_before_a_crash_is_dropped_later(prune, leaves):
    add_leaves(40)
    name = leaf(days=40)
    sql(f"COMMENT ON TABLE {name} IS '{MARK}'")
    sql(f"ALTER TABLE django_jobs_job_history DETACH PARTITION {name}")
    prune()
    assert sql("SELECT to_regclass(%s)", name) == [(None,)]


@on_postgresql
def test_what_an_operator_detached_is_kept(prune, leaves):
    add_leaves(40)
    name = leaf(days=40)
    sql(f"ALTER TABLE django_jobs_job_history DETACH PARTITION {name}")
    prune()
    assert sql("SELECT to_regclass(%s)::text", name) == [(name,)]
    sql(f"DROP TABLE {name}")


@on_postgresql
def test_closed_days_are_frozen_once(prune, leaves):
    add_leaves(3)
    name = leaf(days=3)
    JobHistoryFactory(id=old_id(days=3))
    prune()
    assert {"autovacuum_vacuum_insert_threshold=0", "autovacuum_freeze_min_age=0"} <= options_of(name)
    assert "autovacuum_vacuum_insert_threshold=0" not in options_of(leaf())
    sql("SET vacuum_freeze_min_age = 0")  # as autovacuum does on this table
    sql(f"VACUUM {name}")
    ((age,),) = sql("SELECT age(relfrozenxid) FROM pg_class WHERE relname = %s", name)
    assert age < 100
    sql("RESET vacuum_freeze_min_age")
    assert prune().pause == Pruner.rest
