"""``jobs_enqueued``: for jobs that were really written, after the commit, and for nothing else."""

import pytest
from django.db import connection, transaction

from django_jobs.exceptions import IdempotencyConflict
from django_jobs.models import Job
from django_jobs.signals import jobs_enqueued
from tests.operations.handlers import note, urgent
from tests.operations.support import committing, start

pytestmark = committing


@pytest.fixture
def heard():
    """What a receiver was told: (type, queue, ids)."""
    calls = []

    def receive(sender, queue, jobs, **_):
        calls.append((sender.name, queue, [job.id for job in jobs]))

    jobs_enqueued.connect(receive)
    yield calls
    jobs_enqueued.disconnect(receive)


def test_a_job_is_announced_after_its_commit_and_not_before(heard):
    with transaction.atomic():
        job = note.using(queue="bulk").enqueue(text="a")
        assert heard == []
    assert heard == [("operations.note", "bulk", [job.id])]


def test_outside_of_a_transaction_it_is_announced_at_once(heard):
    job = note.enqueue(text="a")
    assert heard == [("operations.note", "default", [job.id])]


def test_a_bulk_is_announced_once_with_all_its_jobs(heard):
    jobs = note.enqueue_many({"text": str(n)} for n in range(3))
    assert heard == [("operations.note", "default", [job.id for job in jobs])]
    note.enqueue_many([])
    assert len(heard) == 1


def test_what_is_rolled_back_is_not_announced(heard):
    with transaction.atomic():
        kept = note.enqueue(text="kept")
        with transaction.atomic():
            note.enqueue(text="gone")
            transaction.set_rollback(True)
    with transaction.atomic():
        note.enqueue_many([{"text": "gone"}])
        transaction.set_rollback(True)
    assert heard == [("operations.note", "default", [kept.id])]


def test_duplicates_and_conflicts_are_not_announced(heard):
    keyed = note.using(idempotency_key="k")
    first = keyed.enqueue(text="a")
    keyed.enqueue(text="a")
    with pytest.raises(IdempotencyConflict):
        keyed.enqueue(text="b")
    *_, new = note.enqueue_many([{"text": "a"}, {"text": "c"}], idempotency_keys=["k", "l"])
    assert [ids for _, _, ids in heard] == [[first.id], [new.id]]


def test_of_many_that_race_for_a_key_the_one_who_got_it_is_announced(heard):
    def race():
        for n in range(10):
            note.using(idempotency_key=str(n)).enqueue(text="a")

    for racer in [start(race) for _ in range(4)]:
        racer.result(timeout=60)
    assert sorted(ids for _, _, ids in heard) == sorted([job.id] for job in Job.objects.all())
    assert len(heard) == 10


def test_a_receiver_that_raises_is_logged_and_stops_nobody(heard, caplog):
    def broken(**_):
        raise RuntimeError("broken receiver")

    jobs_enqueued.connect(broken)
    try:
        job = note.enqueue(text="a")
    finally:
        jobs_enqueued.disconnect(broken)
    assert [ids for _, _, ids in heard] == [[job.id]]
    assert "broken receiver" in caplog.text


def test_a_receiver_may_ask_for_one_type_only():
    calls = []

    def receive(sender, **_):
        calls.append(sender.name)

    jobs_enqueued.connect(receive, sender=urgent.job_type)
    try:
        note.enqueue(text="a")
        urgent.enqueue(text="a")
    finally:
        jobs_enqueued.disconnect(receive, sender=urgent.job_type)
    assert calls == [urgent.job_type.name]


def test_while_nobody_listens_no_hook_is_planned():
    with transaction.atomic():
        note.enqueue(text="a")
        assert connection.run_on_commit == []


def test_in_a_transaction_that_django_does_not_manage_nothing_is_announced(heard):
    transaction.set_autocommit(False)
    try:
        note.enqueue(text="a")
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert heard == []
    assert Job.objects.count() == 1
