"""Idempotency keys: the same key and payload is the same job, another payload is a conflict."""

from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from django_jobs import cancel, discard_dead, enqueue, retry_dead
from django_jobs.exceptions import IdempotencyConflict, InvalidOption
from django_jobs.models import IdempotencyKey, Job
from tests.operations.handlers import note, order, other_note, urgent
from tests.operations.support import bury, committing, expire_key, fail, finish, on_postgresql, texts

pytestmark = committing

keyed = note.using(idempotency_key="k")


def test_the_same_key_and_payload_is_the_same_job():
    first, second = keyed.enqueue(text="a"), keyed.enqueue(text="a")
    assert not first.duplicate
    assert (second.id, second.status, second.duplicate) == (first.id, "pending", True)
    assert texts() == ["a"]


@pytest.mark.parametrize(
    "again",
    [
        lambda: async_to_sync(keyed.aenqueue)(text="a"),
        lambda: enqueue("operations.note", {"text": "a"}, idempotency_key="k"),
        lambda: keyed.using(delay=timedelta(hours=1), priority=3, tenant="t").enqueue(text="a"),
        lambda: note.enqueue_many([{"text": "a"}], idempotency_keys=["k"])[0],
    ],
    ids=["async", "by name", "with other options", "in a bulk"],
)
def test_every_way_to_enqueue_finds_the_first_job(again):
    first = keyed.enqueue(text="a")
    second = again()
    assert (second.id, second.duplicate) == (first.id, True)
    assert texts() == ["a"]


@pytest.mark.parametrize(
    "other",
    [
        lambda: keyed.enqueue(text="b"),
        lambda: keyed.enqueue(text="a", number=0),
        lambda: keyed.enqueue(text="a", number=1),
        lambda: other_note.using(idempotency_key="k").enqueue(text="a"),
        lambda: note.enqueue_many([{"text": "b"}], idempotency_keys=["k"]),
    ],
    ids=["another value", "a default given", "a field more", "another type", "in a bulk"],
)
def test_the_same_key_with_another_payload_or_type_is_a_conflict(other):
    first = keyed.enqueue(text="a")
    with pytest.raises(IdempotencyConflict) as caught:
        other()
    assert caught.value.job_id == first.id
    assert str(first.id) in str(caught.value)
    assert "'k'" in str(caught.value)
    assert texts() == ["a"]


def test_a_conflict_leaves_the_callers_transaction_usable():
    keyed.enqueue(text="a")
    with transaction.atomic():
        with pytest.raises(IdempotencyConflict):
            keyed.enqueue(text="b")
        note.enqueue(text="c")
    assert texts() == ["a", "c"]


def test_the_order_of_keys_in_the_payload_does_not_matter():
    from datetime import UTC, datetime
    from uuid import UUID

    values = {"id": UUID(int=1), "at": datetime(2026, 1, 1, tzinfo=UTC), "lines": []}
    handle = order.using(idempotency_key="k")
    first = handle.enqueue(**values, tags={"a": 1, "b": 2})
    assert handle.enqueue(tags={"b": 2, "a": 1}, **dict(reversed(values.items()))).id == first.id
    with pytest.raises(IdempotencyConflict):
        handle.enqueue(**values, tags={"a": 2, "b": 1})


def test_values_that_differ_in_type_only_are_another_payload():
    from tests.operations.handlers import anything

    handle = anything.using(idempotency_key="k")
    handle.enqueue(value=1)
    for value in ("1", True, [1], None):
        with pytest.raises(IdempotencyConflict):
            handle.enqueue(value=value)


def test_renaming_a_type_does_not_turn_repeats_into_conflicts():
    def named(name, *aliases):
        return replace(keyed, job_type=replace(keyed.job_type, name=name, aliases=aliases))

    first, old_name = keyed.enqueue(text="a"), keyed.job_type.name
    for renamed in (named("second", old_name), named("third", old_name, "second")):
        again = renamed.enqueue(text="a")
        assert (again.id, again.duplicate) == (first.id, True)
    with pytest.raises(IdempotencyConflict):
        named("second").enqueue(text="a")


def test_queues_have_keys_of_their_own():
    first = keyed.enqueue(text="a")
    second = keyed.using(queue="bulk").enqueue(text="b")
    assert first.id != second.id
    assert not second.duplicate


def test_a_rolled_back_key_is_free_again():
    with transaction.atomic():
        keyed.enqueue(text="a")
        transaction.set_rollback(True)
    assert not keyed.enqueue(text="b").duplicate


def test_within_one_transaction_the_key_counts_too():
    with transaction.atomic():
        first = keyed.enqueue(text="a")
        assert keyed.enqueue(text="a").id == first.id
    assert texts() == ["a"]


@pytest.mark.parametrize(
    ("bring_there", "status"),
    [
        (lambda job: None, "pending"),
        (lambda job: fail(), "failed_retrying"),
        (lambda job: finish(), "succeeded"),
        (lambda job: cancel(job.id), "cancelled"),
        (lambda job: bury(), "dead"),
        (lambda job: bury() and discard_dead(job.id), "discarded"),
        (lambda job: bury() and retry_dead(job.id), "failed_retrying"),
    ],
    ids=["pending", "failed_retrying", "succeeded", "cancelled", "dead", "discarded", "retried"],
)
def test_the_duplicate_says_where_the_first_job_is_by_now(bring_there, status):
    first = keyed.enqueue(text="a")
    bring_there(first)
    second = keyed.enqueue(text="a")
    assert (second.id, second.status, second.duplicate) == (first.id, status, True)


def test_an_expired_key_of_a_finished_job_is_replaced():
    first = keyed.enqueue(text="a")
    finish()
    expire_key("k")
    second = keyed.enqueue(text="b")
    assert second.id != first.id
    assert not second.duplicate
    key = IdempotencyKey.objects.get(key="k")
    assert key.job_id == second.id
    assert key.expires_at > timezone.now() + timedelta(days=13)


def test_an_expired_key_of_an_unfinished_job_still_counts():
    first = keyed.enqueue(text="a")
    expire_key("k")
    assert keyed.enqueue(text="a").id == first.id


def test_an_expired_key_of_a_dead_job_still_counts():
    first = keyed.enqueue(text="a")
    bury()
    expire_key("k")
    assert keyed.enqueue(text="a").id == first.id
    with pytest.raises(IdempotencyConflict):
        keyed.enqueue(text="b")


def test_a_key_lasts_from_the_run_at_of_its_job():
    run_at = timezone.now() + timedelta(days=100)
    keyed.using(run_at=run_at).enqueue(text="a")
    assert IdempotencyKey.objects.get(key="k").expires_at == run_at + timedelta(days=14)


def test_a_key_of_a_past_run_at_lasts_from_now():
    keyed.using(run_at=timezone.now() - timedelta(days=100)).enqueue(text="a")
    assert IdempotencyKey.objects.get(key="k").expires_at > timezone.now() + timedelta(days=13)


def test_the_retention_is_a_setting(settings):
    settings.DJANGO_JOBS = {"QUEUES": ["default"], "IDEMPOTENCY_RETENTION": 60}
    keyed.enqueue(text="a")
    assert IdempotencyKey.objects.get(key="k").expires_at < timezone.now() + timedelta(seconds=61)


@pytest.mark.parametrize("key", ["k" * 255, "ключ", "a'b\"c\\d\n\t%s{}", "k "], ids=ascii)
def test_any_text_can_be_a_key(key):
    first = note.using(idempotency_key=key).enqueue(text="a")
    assert note.using(idempotency_key=key).enqueue(text="a").id == first.id
    (third,) = note.enqueue_many([{"text": "a"}], idempotency_keys=[key])
    assert third.id == first.id
    assert Job.objects.get().idempotency_key == key


@pytest.mark.parametrize("key", ["", "k" * 256, "a\0", "\ud800", 5, b"k"], ids=ascii)
def test_what_cannot_be_a_key_is_refused(key):
    with pytest.raises(InvalidOption, match="idempotency_key"):
        note.using(idempotency_key=key)
    with pytest.raises(InvalidOption, match="Payload number 1: idempotency_key"):
        note.enqueue_many([{}, {}], idempotency_keys=["a", key])
    assert texts() == []


def test_a_scheduled_duplicate_is_found(settings):
    first = keyed.using(delay=timedelta(hours=1)).enqueue(text="a")
    assert first.status == "scheduled"
    assert keyed.enqueue(text="a").status == "scheduled"


@on_postgresql
def test_a_fresh_key_costs_one_query(django_assert_num_queries):
    keyed.enqueue(text="first, so that everything is loaded")
    with django_assert_num_queries(1):
        urgent.using(idempotency_key="k").enqueue(text="a")
