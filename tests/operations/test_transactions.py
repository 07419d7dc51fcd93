"""P1 on one database: the job exists if and only if the caller's transaction commits."""

from contextlib import suppress

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test import TestCase, TransactionTestCase, override_settings
from django.urls import path

from django_jobs import enqueue
from tests.app.models import Note
from tests.operations.handlers import note
from tests.operations.support import committing, on_postgresql, seen_elsewhere, texts

# Django 6.1 renamed it.
create_savepoint = getattr(transaction, "savepoint_create", None) or transaction.savepoint


class Abort(Exception):
    pass


@committing
def test_a_committed_job_is_there():
    with transaction.atomic():
        Note.objects.create(text="data")
        job = note.enqueue(text="a")
    assert texts() == ["a"]
    assert (job.status, job.duplicate) == ("pending", False)
    assert seen_elsewhere() == 1


@committing
def test_a_job_and_its_data_roll_back_together():
    with suppress(Abort), transaction.atomic():
        Note.objects.create(text="data")
        note.enqueue(text="a")
        raise Abort
    assert texts() == []
    assert not Note.objects.exists()


@committing
def test_no_other_connection_sees_the_job_before_the_commit():
    with transaction.atomic():
        note.enqueue(text="a")
        assert seen_elsewhere() == 0
    assert seen_elsewhere() == 1


@committing
def test_without_a_transaction_the_job_is_there_at_once():
    note.enqueue(text="a")
    assert seen_elsewhere() == 1


@committing
def test_a_rolled_back_savepoint_takes_its_job_along_and_no_other():
    with transaction.atomic():
        note.enqueue(text="a")
        with suppress(Abort), transaction.atomic():
            note.enqueue(text="b")
            raise Abort
        note.enqueue(text="c")
    assert texts() == ["a", "c"]


@committing
def test_a_released_savepoint_shares_the_fate_of_the_block_around_it():
    with suppress(Abort), transaction.atomic():
        with transaction.atomic():
            note.enqueue(text="a")
        raise Abort
    assert texts() == []


@committing
def test_a_manual_savepoint_is_respected():
    with transaction.atomic():
        savepoint = create_savepoint()
        note.enqueue(text="a")
        transaction.savepoint_rollback(savepoint)
        note.enqueue(text="b")
    assert texts() == ["b"]


@committing
def test_a_durable_block_works():
    with transaction.atomic(durable=True):
        note.enqueue(text="a")
    assert texts() == ["a"]


@committing
def test_set_rollback_takes_the_job_along():
    with transaction.atomic():
        note.enqueue(text="a")
        transaction.set_rollback(True)
    assert texts() == []


@committing
def test_a_broken_transaction_refuses_the_job():
    Note.objects.create(text="a")
    with transaction.atomic():
        with pytest.raises(IntegrityError), transaction.atomic(savepoint=False):
            Note.objects.create(text="a")
        with pytest.raises(TransactionManagementError):
            note.enqueue(text="a")
        with pytest.raises(TransactionManagementError):
            note.enqueue_many([{"text": "a"}])
    assert texts() == []


@on_postgresql
@committing
def test_a_transaction_that_failed_outside_django_refuses_the_job():
    with suppress(DatabaseError), transaction.atomic():
        with connection.cursor() as cursor, suppress(DatabaseError):
            cursor.execute("SELECT 1/0")
        with pytest.raises(DatabaseError):
            note.enqueue(text="a")
    assert texts() == []


@committing
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_transaction_without_autocommit_decides(ending):
    transaction.set_autocommit(False)
    try:
        note.enqueue(text="a")
        note.enqueue_many([{"text": "b"}])
        assert seen_elsewhere() == 0
        getattr(transaction, ending)()
    finally:
        transaction.set_autocommit(True)
    assert seen_elsewhere() == (2 if ending == "commit" else 0)


@committing
def test_a_bulk_rolls_back_as_a_whole():
    with suppress(Abort), transaction.atomic():
        note.enqueue_many({"text": str(n)} for n in range(1500))
        raise Abort
    assert texts() == []


def view(request):
    from django.http import HttpResponse

    note.enqueue(text="from a view")
    if "fail" in request.GET:
        raise Abort
    return HttpResponse("done")


urlpatterns = [path("", view)]


@pytest.fixture
def atomic_requests(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[], ALLOWED_HOSTS=["testserver"]):
        yield


@committing
def test_atomic_requests_commit_the_job_with_the_request(atomic_requests, client):
    assert client.get("/").content == b"done"
    assert texts() == ["from a view"]


@committing
def test_atomic_requests_roll_the_job_back_with_the_request(atomic_requests, client):
    with pytest.raises(Abort):
        client.get("/?fail")
    assert texts() == []


class InATestCase(TestCase):
    """No commit is needed to see the job, and it costs one query."""

    def test_one_query_enqueues(self):
        note.enqueue(text="first, so that everything is loaded")
        with self.assertNumQueries(1):
            note.enqueue(text="a")
        with self.assertNumQueries(1):
            enqueue("operations.note", {"text": "b"})
        assert texts()[1:] == ["a", "b"]

    def test_the_enclosing_block_does_not_matter(self):
        with transaction.atomic():
            note.enqueue(text="a")
        with suppress(Abort), transaction.atomic():
            note.enqueue(text="b")
            raise Abort
        assert texts() == ["a"]


class InATransactionTestCase(TransactionTestCase):
    def test_one_query_enqueues_in_a_transaction(self):
        with transaction.atomic(), self.assertNumQueries(1):
            note.enqueue(text="a")
        assert texts() == ["a"]
