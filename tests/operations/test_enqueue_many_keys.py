"""Bulks with idempotency keys."""

from datetime import timedelta

import pytest
from django.db import transaction

from django_jobs.exceptions import IdempotencyConflict, InvalidOption, InvalidPayload
from django_jobs.models import IdempotencyKey, Job
from tests.operations.handlers import note
from tests.operations.support import bury, committing, expire_key, finish, texts

pytestmark = committing


def payloads(*names):
    return [{"text": name} for name in names]


def test_each_job_has_its_key():
    jobs = note.enqueue_many(payloads("a", "b"), idempotency_keys=["ka", "kb"])
    keys = IdempotencyKey.objects.order_by("key").values_list("key", "job_id")
    assert list(keys) == [("ka", jobs[0].id), ("kb", jobs[1].id)]
    assert list(Job.objects.order_by("idempotency_key").values_list("id", flat=True)) == [job.id for job in jobs]


def test_known_keys_give_their_first_jobs_in_their_places():
    first = note.using(idempotency_key="kb").enqueue(text="b")
    jobs = note.enqueue_many(payloads("a", "b", "c"), idempotency_keys=["ka", "kb", "kc"])
    assert [job.duplicate for job in jobs] == [False, True, False]
    assert jobs[1].id == first.id
    assert sorted(texts()) == ["a", "b", "c"]


def test_the_same_key_and_payload_twice_in_a_bulk_is_one_job():
    jobs = note.enqueue_many(payloads("b", "a", "b", "b"), idempotency_keys=["kb", "ka", "kb", "kb"])
    assert [job.duplicate for job in jobs] == [False, False, True, True]
    assert jobs[0].id == jobs[2].id == jobs[3].id
    assert sorted(texts()) == ["a", "b"]


def test_the_same_key_with_another_payload_in_a_bulk_is_a_conflict_and_nothing_is_written():
    with pytest.raises(IdempotencyConflict):
        note.enqueue_many(payloads("a", "b", "c"), idempotency_keys=["k1", "k2", "k1"])
    assert texts() == []
    assert not IdempotencyKey.objects.exists()


def test_a_conflict_with_an_earlier_job_writes_nothing_of_the_bulk():
    first = note.using(idempotency_key="k999").enqueue(text="first")
    with pytest.raises(IdempotencyConflict) as caught:
        note.enqueue_many(payloads(*map(str, range(1500))), idempotency_keys=[f"k{n}" for n in range(1500)])
    assert caught.value.job_id == first.id
    assert texts() == ["first"]
    assert IdempotencyKey.objects.count() == 1


def test_a_conflict_leaves_the_callers_transaction_usable():
    note.using(idempotency_key="k").enqueue(text="first")
    with transaction.atomic():
        with pytest.raises(IdempotencyConflict):
            note.enqueue_many(payloads("a", "b"), idempotency_keys=["new", "k"])
        note.enqueue(text="c")
    assert texts() == ["first", "c"]


def test_a_wrong_payload_writes_nothing_of_the_bulk():
    with pytest.raises(InvalidPayload, match="Payload number 1"):
        note.enqueue_many([{"text": "a"}, {"text": 5}], idempotency_keys=["k1", "k2"])
    assert not IdempotencyKey.objects.exists()


@pytest.mark.parametrize("keys", [["k1"], ["k1", "k2", "k3"], [], "k"], ids=repr)
def test_a_key_for_each_payload_is_needed(keys):
    with pytest.raises(InvalidOption, match="exactly one key for each payload"):
        note.enqueue_many(payloads("a", "b"), idempotency_keys=iter(keys))
    assert texts() == []


def test_expired_keys_are_replaced_unless_their_jobs_are_dead_or_unfinished():
    handles = {name: note.using(idempotency_key=name) for name in ("done", "dead", "waiting")}
    first = {}
    for name, ending in (("done", finish), ("dead", bury), ("waiting", lambda: None)):
        first[name] = handles[name].enqueue(text=name)
        ending()
        expire_key(name)
    jobs = dict(zip(first, note.enqueue_many(payloads(*first), idempotency_keys=list(first)), strict=True))
    assert {name: job.duplicate for name, job in jobs.items()} == {"done": False, "dead": True, "waiting": True}
    assert jobs["done"].id != first["done"].id
    assert jobs["dead"].status == "dead"


def test_a_spread_bulk_keeps_its_times_and_its_keys_last_accordingly():
    jobs = note.enqueue_many(payloads("b", "a"), idempotency_keys=["kb", "ka"], spread=timedelta(days=2))
    run_at = {job.id: job.run_at for job in Job.objects.all()}
    assert run_at[jobs[1].id] - run_at[jobs[0].id] == timedelta(days=1)
    expiry = dict(IdempotencyKey.objects.values_list("key", "expires_at"))
    assert expiry["ka"] - expiry["kb"] == timedelta(days=1)


def test_the_same_bulk_again_is_all_duplicates_with_their_status_in_few_queries(django_assert_max_num_queries):
    names = [str(n) for n in range(3000)]
    first = note.enqueue_many(payloads(*names), idempotency_keys=names)
    with django_assert_max_num_queries(30):
        second = note.enqueue_many(payloads(*names), idempotency_keys=names)
    assert [job.id for job in second] == [job.id for job in first]
    assert {(job.status, job.duplicate) for job in second} == {("pending", True)}
    assert Job.objects.count() == 3000
