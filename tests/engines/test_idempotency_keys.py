from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections, transaction
from django.utils import timezone

from django_jobs.engines.values import BulkRow
from django_jobs.ids import uuid7
from django_jobs.models import IdempotencyKey, Job
from tests.factories import DeadJobFactory, IdempotencyKeyFactory, JobFactory, JobHistoryFactory

from .support import in_threads, new_job, stored

pytestmark = pytest.mark.django_db(transaction=True)

HASH = bytes(range(32))
DAY = timedelta(days=1)


def keyed_job(key="k", **changes):
    return new_job(key=key, payload_hash=HASH, **changes)


def keyed_rows(*keys):
    return [BulkRow(uuid7(), "{}", 0.0, key, HASH) for key in keys]


def bulk(statements, connection, rows, **shared):
    with transaction.atomic():
        return statements.enqueue_many(connection, new_job(**shared), rows, keyed=True).statuses


def test_the_first_job_takes_the_key(statements, connection):
    job = keyed_job()
    assert statements.enqueue(connection, job).status == "pending"
    holder = statements.key_holder(connection, "default", "k")
    assert (holder.job_id, holder.payload_hash, holder.free) == (job.id, HASH, False)
    assert stored(job).idempotency_key == "k"


def test_a_second_job_with_the_key_is_not_written(statements, connection):
    statements.enqueue(connection, keyed_job())
    assert statements.enqueue(connection, keyed_job()) is None
    assert Job.objects.count() == 1


def test_the_transaction_of_a_duplicate_goes_on(statements, connection):
    statements.enqueue(connection, keyed_job())
    other = new_job()
    with transaction.atomic():
        assert statements.enqueue(connection, keyed_job()) is None
        statements.enqueue(connection, other)
    assert Job.objects.filter(id=other.id).exists()


def test_keys_belong_to_their_queue(statements, connection):
    statements.enqueue(connection, keyed_job())
    assert statements.enqueue(connection, keyed_job(queue="bulk")) is not None


def test_a_key_that_nobody_took_has_no_holder(statements, connection):
    assert statements.key_holder(connection, "default", "k") is None


@pytest.mark.parametrize(("ahead", "delay"), [(None, timedelta(0)), (3 * DAY, DAY), (-3 * DAY, timedelta(0))])
def test_a_key_lives_for_its_retention_after_the_job_may_run(statements, connection, ahead, delay):
    run_at = timezone.now() + ahead if ahead is not None else None
    statements.enqueue(connection, keyed_job(run_at=run_at, delay=delay, retention=DAY))
    expected = max(timezone.now(), (run_at or timezone.now()) + delay) + DAY
    assert abs(IdempotencyKey.objects.get().expires_at - expected) < timedelta(seconds=10)


@pytest.mark.parametrize("still_there", [JobFactory, DeadJobFactory])
def test_a_key_is_not_free_while_its_job_is_unfinished_or_dead(statements, connection, still_there):
    key = IdempotencyKeyFactory(expired=True, job_id=still_there().id)
    assert statements.key_holder(connection, "default", key.key).free is False


def test_a_key_is_not_free_before_it_expires(statements, connection):
    key = IdempotencyKeyFactory(job_id=JobHistoryFactory().job_id)
    assert statements.key_holder(connection, "default", key.key).free is False


def test_an_expired_key_can_be_taken_once_it_is_given_up(statements, connection):
    key = IdempotencyKeyFactory(expired=True, job_id=JobHistoryFactory().job_id)
    assert statements.enqueue(connection, keyed_job(key.key)) is None
    holder = statements.key_holder(connection, "default", key.key)
    assert holder.free is True
    statements.free_key(connection, "default", key.key, holder.job_id)
    assert statements.enqueue(connection, keyed_job(key.key)) is not None


def test_only_the_expired_key_that_was_read_is_given_up(statements, connection):
    alive, expired = IdempotencyKeyFactory(), IdempotencyKeyFactory(expired=True)
    statements.free_key(connection, "default", alive.key, alive.job_id)
    statements.free_key(connection, "default", expired.key, uuid7())
    statements.free_key(connection, "bulk", expired.key, expired.job_id)
    assert IdempotencyKey.objects.count() == 2


# Bulk


def test_in_a_bulk_only_the_jobs_with_new_keys_are_written(statements, connection):
    statements.enqueue(connection, keyed_job("b"))
    rows = keyed_rows("a", "b", "c")
    assert bulk(statements, connection, rows) == ["pending", None, "pending"]
    assert stored(rows[0]).idempotency_key == "a"
    assert Job.objects.count() == 3
    assert statements.key_holder(connection, "default", "c").job_id == rows[2].id


def test_of_two_jobs_with_one_key_in_a_bulk_one_is_written(statements, connection):
    statuses = bulk(statements, connection, keyed_rows("a", "a", "b"))
    assert sorted(map(str, statuses)) == ["None", "pending", "pending"]
    assert Job.objects.count() == 2


def test_a_key_can_be_repeated_in_another_chunk_of_a_bulk(statements, connection):
    keys = [str(number % 1500) for number in range(3000)]
    statuses = bulk(statements, connection, keyed_rows(*keys))
    assert statuses == ["pending"] * 1500 + [None] * 1500


# Races


def race(statements, enqueue, count=6):
    barrier = Barrier(count)
    placed = []

    def work(number):
        barrier.wait()
        placed.append(enqueue(connections["default"], number))

    in_threads(work, count)
    return placed


def test_of_many_that_take_a_key_at_once_one_gets_it(statements, connection):
    for attempt in range(10):
        placed = race(statements, lambda own, _, key=str(attempt): statements.enqueue(own, keyed_job(key)))
        assert len([one for one in placed if one is not None]) == 1
    assert Job.objects.count() == 10


def test_overlapping_bulks_do_not_wait_for_each_other_in_a_circle(statements, connection):
    keys = [str(number) for number in range(200)]

    def enqueue(own, number):
        with transaction.atomic(using=own.alias):
            order = keys if number % 2 else keys[::-1]
            return statements.enqueue_many(own, new_job(), keyed_rows(*order), keyed=True)

    placed = race(statements, enqueue)
    written = [status for bulk in placed for status in bulk.statuses if status]
    assert len(written) == Job.objects.count() == len(keys)
