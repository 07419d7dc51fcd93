"""P1 with more than one database: a job that could not commit with the data is refused."""

from contextlib import nullcontext

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.test import TestCase, override_settings

from django_jobs import enqueue
from django_jobs.exceptions import SeparateTransactions
from tests.app.models import Note
from tests.operations.handlers import note
from tests.operations.support import texts

BOTH = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def ways_to_enqueue():
    return [
        lambda: note.enqueue(text="a"),
        lambda: async_to_sync(note.aenqueue)(text="a"),
        lambda: note.enqueue_many([{"text": "a"}]),
        lambda: note.using(idempotency_key="k").enqueue(text="a"),
        lambda: enqueue("operations.note", {"text": "a"}),
    ]


@BOTH
@pytest.mark.parametrize("way", ways_to_enqueue(), ids=["one", "async", "many", "with key", "by name"])
def test_a_transaction_on_another_alias_alone_refuses_the_job(way):
    with transaction.atomic(using="other"):
        Note.objects.using("other").create(text="data")
        with pytest.raises(SeparateTransactions) as caught:
            way()
    assert texts() == []
    for advice in ("'other'", "'default'", "atomic(using='default')", "on_commit", "HARMLESS_ALIASES"):
        assert advice in str(caught.value)


@BOTH
def test_a_transaction_on_the_jobs_alias_too_takes_the_job():
    with transaction.atomic(using="other"), transaction.atomic():
        note.enqueue(text="a")
    with transaction.atomic(), transaction.atomic(using="other"):
        note.enqueue(text="b")
    assert texts() == ["a", "b"]


@BOTH
def test_without_autocommit_another_alias_counts_as_in_a_transaction():
    transaction.set_autocommit(False, using="other")
    try:
        with pytest.raises(SeparateTransactions):
            note.enqueue(text="a")
    finally:
        transaction.rollback(using="other")
        transaction.set_autocommit(True, using="other")


@BOTH
def test_without_autocommit_the_jobs_alias_counts_as_in_a_transaction():
    transaction.set_autocommit(False)
    try:
        with transaction.atomic(using="other"):
            note.enqueue(text="a")
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert texts() == ["a"]


@BOTH
@override_settings(DJANGO_JOBS={"QUEUES": ["default"], "HARMLESS_ALIASES": ["other"]})
def test_a_harmless_alias_does_not_matter():
    with transaction.atomic(using="other"):
        note.enqueue(text="a")
    assert texts() == ["a"]


@BOTH
def test_an_idle_other_alias_does_not_matter():
    Note.objects.using("other").create(text="data")
    note.enqueue(text="a")
    assert texts() == ["a"]


@BOTH
def test_the_advice_to_enqueue_after_the_commit_works():
    with transaction.atomic(using="other"):
        transaction.on_commit(lambda: note.enqueue(text="a"), using="other")
        assert texts() == []
    assert texts() == ["a"]


@BOTH
@override_settings(DJANGO_JOBS={"DATABASE": "other", "QUEUES": ["default"]})
@pytest.mark.parametrize("outcome", ["commit", "roll back"])
def test_jobs_kept_elsewhere_follow_the_transaction_of_their_alias(outcome):
    expected = pytest.raises(ZeroDivisionError) if outcome == "roll back" else nullcontext()
    with expected, transaction.atomic(using="other"):
        note.enqueue(text="a")
        note.enqueue_many([{"text": "b"}])
        assert outcome == "commit" or 1 / 0
    assert texts("other") == (["a", "b"] if outcome == "commit" else [])
    assert texts() == []


@BOTH
@override_settings(DJANGO_JOBS={"DATABASE": "other", "QUEUES": ["default"]})
def test_jobs_kept_elsewhere_are_refused_in_a_transaction_on_default():
    with transaction.atomic(), pytest.raises(SeparateTransactions):
        note.enqueue(text="a")


class WhereTestCaseOpenedBothBlocks(TestCase):
    """They count on neither side, so that a test sees the refusal that production would see."""

    databases = {"default", "other"}

    def test_they_do_not_refuse(self):
        assert connections["other"].in_atomic_block
        note.enqueue(text="a")
        assert texts() == ["a"]

    def test_they_do_not_permit(self):
        with transaction.atomic(using="other"), pytest.raises(SeparateTransactions):
            note.enqueue(text="a")

    def test_an_own_block_on_each_side_permits(self):
        with transaction.atomic(using="other"), transaction.atomic():
            note.enqueue(text="a")
        assert texts() == ["a"]
