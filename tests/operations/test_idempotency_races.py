"""Two transactions, one key: the second waits for the fate of the first."""

import threading

import pytest
from django.db import connection, transaction

from django_jobs import retry_dead
from django_jobs.engines.postgresql.statements import PostgresqlStatements
from django_jobs.exceptions import IdempotencyConflict
from django_jobs.models import Job
from tests.engines.support import in_threads
from tests.operations.handlers import note
from tests.operations.support import bury, committing, expire_key, finish, on_postgresql, on_sqlite, start, texts
from tests.waiting import wait_for

pytestmark = committing

keyed = note.using(idempotency_key="k")


def somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0]


@on_postgresql
def test_the_second_waits_and_finds_the_first_after_its_commit():
    with transaction.atomic():
        first = keyed.enqueue(text="a")
        second = start(lambda: keyed.enqueue(text="a"))
        wait_for(somebody_waits_for_a_lock)
        assert not second.done()
    assert (second.result(timeout=5).id, second.result(timeout=5).duplicate) == (first.id, True)
    assert texts() == ["a"]


@on_postgresql
def test_the_second_waits_and_takes_the_key_after_the_rollback_of_the_first():
    with transaction.atomic():
        first = keyed.enqueue(text="a")
        second = start(lambda: keyed.enqueue(text="b"))
        wait_for(somebody_waits_for_a_lock)
        transaction.set_rollback(True)
    assert second.result(timeout=5).id != first.id
    assert not second.result(timeout=5).duplicate
    assert texts() == ["b"]


@on_postgresql
def test_the_second_waits_and_meets_a_conflict_after_the_commit_of_the_first():
    with transaction.atomic():
        first = keyed.enqueue(text="a")
        second = start(lambda: keyed.enqueue(text="b"))
        wait_for(somebody_waits_for_a_lock)
    with pytest.raises(IdempotencyConflict) as caught:
        second.result(timeout=5)
    assert caught.value.job_id == first.id


@on_postgresql
def test_a_duplicate_of_a_committed_job_waits_for_nobody():
    first = keyed.enqueue(text="a")
    with transaction.atomic():
        keyed.enqueue(text="a")
        assert start(lambda: keyed.enqueue(text="a")).result(timeout=5).id == first.id


@pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
def test_of_many_at_once_exactly_one_is_enqueued(expired):
    if expired:
        keyed.enqueue(text="a")
        finish()
        expire_key("k")
    barrier = threading.Barrier(8)
    placed = []

    def enqueue(_):
        barrier.wait()
        placed.append(keyed.enqueue(text="a"))

    in_threads(enqueue, 8)
    assert len({job.id for job in placed}) == 1
    assert [job.duplicate for job in placed].count(False) == 1
    assert Job.objects.count() == 1


@pytest.mark.parametrize("size", [30, 2500], ids=["one chunk", "several chunks"])
def test_two_bulks_with_the_same_keys_in_opposite_order_do_not_deadlock(size):
    keys = [f"{n * 7919 % size:05}" for n in range(size)]
    barrier = threading.Barrier(2)
    results = {}

    def enqueue(number):
        order = keys if number else keys[::-1]
        barrier.wait()
        results[number] = note.enqueue_many(({"text": key} for key in order), idempotency_keys=order)

    in_threads(enqueue, 2)
    assert Job.objects.count() == size
    assert [job.id for job in results[1]] == [job.id for job in results[0]][::-1]
    assert sum(not job.duplicate for placed in results.values() for job in placed) == size


@on_postgresql
def test_two_bulks_that_replace_the_same_expired_keys_in_opposite_order_do_not_deadlock(monkeypatch):
    keys = ["ka", "kb"]
    note.enqueue_many([{"text": key} for key in keys], idempotency_keys=keys)
    for key in keys:
        finish()
        expire_key(key)
    both, real = threading.Barrier(2), PostgresqlStatements.free_key
    met = threading.local()

    def free_key(self, *arguments):
        if not hasattr(met, "other"):
            met.other = both.wait(20)
        return real(self, *arguments)

    monkeypatch.setattr(PostgresqlStatements, "free_key", free_key)

    def enqueue(number):
        mine = keys if number else keys[::-1]
        note.enqueue_many([{"text": key} for key in mine], idempotency_keys=mine)

    in_threads(enqueue, 2)
    assert sorted(texts()) == keys


@on_sqlite
def test_a_dead_job_that_is_retried_while_somebody_asks_for_its_expired_key_keeps_it():
    first = keyed.enqueue(text="a")
    bury()
    expire_key("k")

    def retry_after_the_look(execute, sql, params, many, context):
        answer = execute(sql, params, many, context)
        if sql.startswith("SELECT") and "django_jobs_job" in sql and not retried:
            retried.append(True)
            retry_dead([first.id])
        return answer

    retried = []
    with connection.execute_wrapper(retry_after_the_look):
        again = keyed.enqueue(text="a")
    assert retried
    assert (again.id, again.duplicate) == (first.id, True)
