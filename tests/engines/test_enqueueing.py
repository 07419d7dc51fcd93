import json
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobs.engines.values import BulkRow
from django_jobs.ids import uuid7
from django_jobs.models import Job
from tests.app.models import Note

from .support import claim, new_job, stored

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)

AWKWARD = {
    "backslash": "\\ \\n \\. \\N",
    "control": "\t\n\r\b\f\x1b",
    "quotes": "' \" ` $$ %s {}",
    "unicode": "ß 漢字 🐘 \u2028 é",
    "numbers": [0, -1, 1.5, 10**30, 1e-300],
    "nothing": [None, [], {}, ""],
}


def is_now(instant):
    return abs(instant - timezone.now()) < 10 * SECOND


def rows(count, **values):
    return [BulkRow(uuid7(), json.dumps({"n": n}), **values) for n in range(count)]


def bulk(statements, connection, rows, *, keyed=False, **shared):
    with transaction.atomic():
        return statements.enqueue_many(connection, new_job(**shared), rows, keyed=keyed)


def test_a_job_is_pending_at_once(statements, connection):
    job = new_job(
        type="invoice",
        payload='{"n": 1}',
        priority=7,
        tenant="acme",
        max_attempts=3,
        context='{"request_id": "r"}',
    )
    placed = statements.enqueue(connection, job)
    assert placed.status == "pending"
    row = stored(job)
    assert (row.status, row.queue, row.type, row.payload) == ("pending", "default", "invoice", {"n": 1})
    assert (row.priority, row.tenant, row.max_attempts) == (7, "acme", 3)
    assert row.context == {"request_id": "r"}
    assert is_now(row.created_at)
    assert is_now(row.run_at)


def test_a_new_job_has_no_past(statements, connection):
    job = new_job()
    statements.enqueue(connection, job)
    row = stored(job)
    assert (row.attempts, row.lost_runs, row.errors, row.last_error) == (0, 0, [], "")
    assert (row.untaken_since, row.progress, row.cancel_requested_at) == (None, None, None)
    assert (row.locked_by, row.locked_until, row.lease_token, row.idempotency_key) == ("", None, None, "")


@pytest.mark.parametrize(
    ("ahead", "delay", "status"),
    [
        (None, timedelta(0), "pending"),
        (None, HOUR, "scheduled"),
        (HOUR, timedelta(0), "scheduled"),
        (-HOUR, timedelta(0), "pending"),
        (-HOUR, 2 * HOUR, "scheduled"),
        (HOUR, -2 * HOUR, "pending"),
    ],
)
def test_run_at_and_delay_add_up_to_ready_or_scheduled(statements, connection, ahead, delay, status):
    run_at = timezone.now() + ahead if ahead is not None else None
    job = new_job(run_at=run_at, delay=delay)
    assert statements.enqueue(connection, job).status == status
    row = stored(job)
    assert row.status == status
    expected = (run_at or timezone.now()) + delay
    assert row.run_at == expected or (run_at is None and abs(row.run_at - expected) < 10 * SECOND)


def test_a_payload_comes_back_as_it_went_in(statements, connection, session):
    statements.enqueue(connection, new_job(payload=json.dumps(AWKWARD)))
    bulk(statements, connection, [BulkRow(uuid7(), json.dumps(AWKWARD, ensure_ascii=False))], type="\\N\t\n'")
    bulk(
        statements,
        connection,
        [BulkRow(uuid7(), json.dumps(AWKWARD), key="\\ '\"", payload_hash=b"\x00")],
        keyed=True,
        tenant="\\t",
        context='{"a": "\\\\"}',
    )
    jobs = claim(session)
    assert [json.loads(job.payload) for job in jobs] == [AWKWARD] * 3
    assert (jobs[1].type, jobs[2].tenant, json.loads(jobs[2].context)) == ("\\N\t\n'", "\\t", {"a": "\\"})


# In the caller's transaction


def test_time_goes_on_inside_a_long_transaction(statements, connection):
    """``now()`` of PostgreSQL would stand still, and a job that is due would look scheduled."""
    first, second = new_job(), new_job()
    with transaction.atomic():
        statements.enqueue(connection, first)
        second = second._replace(run_at=timezone.now())
        assert statements.enqueue(connection, second).status == "pending"
    assert stored(first).created_at <= stored(second).run_at <= stored(second).created_at + SECOND


def test_a_job_exists_if_the_transaction_commits(statements, connection):
    job = new_job()
    with transaction.atomic():
        Note.objects.create(text="kept")
        statements.enqueue(connection, job)
    assert Job.objects.filter(id=job.id).exists()


@pytest.mark.parametrize("key", ["", "k"])
def test_a_job_vanishes_with_the_transaction(statements, connection, key):
    with transaction.atomic():
        statements.enqueue(connection, new_job(key=key, payload_hash=b"h" if key else b""))
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert statements.key_holder(connection, "default", "k") is None


def test_a_job_vanishes_with_its_savepoint(statements, connection):
    kept, lost = new_job(), new_job()
    with transaction.atomic():
        statements.enqueue(connection, kept)
        with transaction.atomic():
            statements.enqueue(connection, lost)
            transaction.set_rollback(True)
    assert list(Job.objects.values_list("id", flat=True)) == [kept.id]


# Bulk


@pytest.mark.parametrize("count", [0, 1, 2500])
def test_a_bulk_of_any_size_is_enqueued(statements, connection, count):
    placed = bulk(statements, connection, rows(count))
    assert placed.statuses == ["pending"] * count
    assert Job.objects.count() == count


def test_a_bulk_is_claimed_in_its_order(statements, connection, session):
    many = rows(1200)
    bulk(statements, connection, iter(many))
    assert [job.id for job in claim(session, limit=2000)] == [row.id for row in many]


def test_two_bulks_and_single_jobs_are_claimed_in_the_order_they_came(statements, connection, session):
    first, single, second = rows(3), new_job(), rows(3)
    bulk(statements, connection, first)
    statements.enqueue(connection, single)
    bulk(statements, connection, second)
    ids = [job.id for job in claim(session)]
    assert ids == [row.id for row in first] + [single.id] + [row.id for row in second]


@pytest.mark.parametrize("keyed", [False, True])
def test_the_jobs_of_a_bulk_can_be_spread(statements, connection, keyed):
    spread = [
        BulkRow(uuid7(), "{}", offset, f"k{offset}" if keyed else "", b"h" if keyed else b"")
        for offset in (0.0, 0.25, 600.0)
    ]
    run_at = timezone.now() - 10 * SECOND
    placed = bulk(statements, connection, spread, keyed=keyed, run_at=run_at, delay=SECOND)
    assert placed.statuses == ["pending", "pending", "scheduled"]
    times = [stored(row).run_at - run_at for row in spread]
    assert times == [SECOND, 1.25 * SECOND, 601 * SECOND]


def test_the_jobs_of_a_bulk_share_their_options(statements, connection):
    (row,) = rows(1)
    bulk(
        statements,
        connection,
        [row],
        queue="bulk",
        type="invoice",
        priority=-2,
        tenant="acme",
        max_attempts=3,
        context='{"a": 1}',
    )
    job = stored(row)
    assert (job.queue, job.type, job.priority, job.tenant) == ("bulk", "invoice", -2, "acme")
    assert (job.max_attempts, job.context, job.payload) == (3, {"a": 1}, {"n": 0})
    assert is_now(job.created_at)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_bulk_vanishes_with_its_transaction(statements, connection, keyed):
    many = [row._replace(key=str(row.id), payload_hash=b"h") for row in rows(1500)]
    with transaction.atomic():
        statements.enqueue_many(connection, new_job(), many, keyed=keyed)
        transaction.set_rollback(True)
    assert not Job.objects.exists()


def test_a_later_bulk_is_not_lost_in_an_earlier_ones_savepoint(statements, connection):
    kept = rows(3)
    with transaction.atomic():
        with transaction.atomic():
            statements.enqueue_many(connection, new_job(), rows(3), keyed=False)
            transaction.set_rollback(True)
        statements.enqueue_many(connection, new_job(), kept, keyed=False)
    assert set(Job.objects.values_list("id", flat=True)) == {row.id for row in kept}


def test_each_of_some_jobs_has_options_of_its_own(statements, connection):
    awkward = json.dumps(AWKWARD)
    plain = new_job(type="a", payload=awkward, queue="urgent", priority=3, tenant='ac"me\\', context='{"a": "\\n"}')
    later = new_job(type="b", run_at=timezone.now() + HOUR, max_attempts=2)
    delayed = new_job(type="c", delay=HOUR)
    past = new_job(type="d", run_at=timezone.now() - HOUR)
    placed = statements.enqueue_each(connection, [plain, later, delayed, past])
    assert [place.status for place in placed] == ["pending", "scheduled", "scheduled", "pending"]
    row = stored(plain)
    assert (row.queue, row.priority, row.tenant, row.context) == ("urgent", 3, 'ac"me\\', {"a": "\n"})
    assert row.payload == AWKWARD
    assert (stored(later).run_at, stored(later).max_attempts) == (later.run_at, 2)
    assert abs(stored(delayed).run_at - timezone.now() - HOUR) < 10 * SECOND
    assert stored(past).run_at == past.run_at
    assert statements.enqueue_each(connection, []) == []
