"""Waking a sleeper: after the commit, once for each queue, and only if somebody sleeps."""

import logging
from contextlib import suppress

import pytest
from django.db import transaction

from django_jobs import resume, retry_dead
from django_jobs.engines.postgresql.statements import PostgresqlStatements
from django_jobs.operations.transactions import Wake
from tests.operations.handlers import note, urgent
from tests.operations.support import bury, committing, counting_wakes, is_woken, on_postgresql, sleeper
from tests.waiting import wait_for

pytestmark = [on_postgresql, committing]


class Abort(Exception):
    pass


def hooks():
    return [hook for _, hook, *_ in transaction.get_connection().run_on_commit if isinstance(hook, Wake)]


@pytest.fixture
def asleep():
    with sleeper() as opened:
        yield opened


def test_nobody_is_woken_when_nobody_sleeps():
    with counting_wakes() as wakes:
        note.enqueue(text="a")
        with transaction.atomic():
            note.enqueue(text="b")
            note.enqueue_many([{"text": "c"}])
            assert hooks() == []
        assert wakes() == 0


def test_a_sleeper_is_woken_after_the_commit_and_not_before(asleep):
    with counting_wakes() as wakes:
        with transaction.atomic():
            note.enqueue(text="a")
            assert wakes() == 0
        assert wakes() == 1
    wait_for(lambda: is_woken(asleep), timeout=2)


def test_a_sleeper_is_woken_without_a_transaction(asleep):
    note.enqueue(text="a")
    wait_for(lambda: is_woken(asleep), timeout=2)


def test_a_sleeper_is_woken_by_a_transaction_that_django_does_not_manage(asleep):
    transaction.set_autocommit(False)
    try:
        note.enqueue(text="a")
        assert not is_woken(asleep)
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    wait_for(lambda: is_woken(asleep), timeout=2)


def test_nobody_is_woken_by_a_rollback(asleep):
    with counting_wakes() as wakes:
        with suppress(Abort), transaction.atomic():
            note.enqueue(text="a")
            raise Abort
        assert wakes() == 0
    assert not is_woken(asleep)


def test_many_jobs_of_one_transaction_wake_once_for_each_queue():
    with sleeper("default", "urgent"), counting_wakes() as wakes:
        with transaction.atomic():
            for _ in range(10):
                note.enqueue(text="a")
                urgent.enqueue(text="a")
            note.enqueue_many([{"text": "a"}] * 10)
            assert sorted(hook.queue for hook in hooks()) == ["default", "urgent"]
        assert wakes() == 2


def test_a_rolled_back_savepoint_does_not_take_the_wake_up_of_a_later_job_along(asleep):
    with counting_wakes() as wakes:
        with transaction.atomic():
            with suppress(Abort), transaction.atomic():
                note.enqueue(text="a")
                raise Abort
            note.enqueue(text="b")
        assert wakes() == 1


def test_jobs_before_in_and_after_a_rolled_back_savepoint_wake_once(asleep):
    with counting_wakes() as wakes:
        with transaction.atomic():
            note.enqueue(text="a")
            with suppress(Abort), transaction.atomic():
                note.enqueue(text="b")
                raise Abort
            note.enqueue(text="c")
        assert wakes() == 1


def test_jobs_in_and_after_a_released_savepoint_wake_once(asleep):
    with counting_wakes() as wakes:
        with transaction.atomic():
            with transaction.atomic():
                note.enqueue(text="a")
            with transaction.atomic(savepoint=False):
                note.enqueue(text="b")
            note.enqueue(text="c")
        assert wakes() == 1


def test_a_wake_up_planned_in_a_released_savepoint_ends_with_the_block_around_it(asleep):
    with counting_wakes() as wakes:
        with transaction.atomic():
            with suppress(Abort), transaction.atomic():
                with transaction.atomic():
                    note.enqueue(text="a")
                note.enqueue(text="b")
                raise Abort
            assert hooks() == []
            note.enqueue(text="c")
        assert wakes() == 1


def test_a_job_for_later_wakes_nobody(asleep):
    from datetime import timedelta

    with counting_wakes() as wakes:
        note.using(delay=timedelta(hours=1)).enqueue(text="a")
        note.using(delay=timedelta(hours=1)).enqueue_many([{"text": "a"}])
        assert wakes() == 0


def test_a_sleeper_of_another_queue_sleeps_on(asleep):
    with counting_wakes() as wakes:
        urgent.enqueue(text="a")
        assert wakes() == 0


def test_a_duplicate_wakes_nobody(asleep):
    handle = note.using(idempotency_key="k")
    handle.enqueue(text="a")
    with counting_wakes() as wakes:
        handle.enqueue(text="a")
        assert wakes() == 0


def test_a_resumed_queue_and_a_retried_dead_job_wake_after_the_commit(asleep):
    note.enqueue(text="a")
    dead = bury()
    with counting_wakes() as wakes:
        with transaction.atomic():
            resume("default")
            retry_dead(dead.id)
            assert wakes() == 0
        assert wakes() == 1


def test_a_wake_up_that_fails_is_logged_and_the_caller_goes_on(asleep, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("no connection")

    monkeypatch.setattr(PostgresqlStatements, "wake", fail)
    with caplog.at_level(logging.ERROR, "django_jobs"):
        with transaction.atomic():
            note.enqueue(text="a")
        note.enqueue(text="b")
    assert [record.getMessage() for record in caplog.records] == [
        "No worker of queue 'default' could be woken; one will look for itself."
    ] * 2


def test_a_queue_name_of_two_hundred_unicode_characters_works(settings):
    from tests.operations.support import claim, session

    name = "ü界" * 100
    settings.DJANGO_JOBS = {"QUEUES": ["default", name]}
    with sleeper(name) as opened:
        job = note.using(queue=name).enqueue(text="a")
        wait_for(lambda: is_woken(opened), timeout=2)
    with session() as opened:
        assert [claimed.id for claimed in claim(opened, queues=[name])] == [job.id]
