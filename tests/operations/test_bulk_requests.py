"""Asking for a bulk operation: what is meant, previewed, refused, and asked for once."""

from datetime import timedelta

import pytest
from django.db import transaction

from django_jobs import DeadFilter, preview_bulk, start_bulk
from django_jobs.exceptions import InvalidOption
from django_jobs.ids import uuid7
from django_jobs.models import AuditEntry, BulkOperation, DeadJob
from tests.engines.support import in_threads
from tests.operations.support import committing, on_postgresql
from tests.operations.triage import ANNA, ago, carry_out, die, no_changes, retry_all, whereabouts

pytestmark = [committing, pytest.mark.usefixtures("no_changes")]
__all__ = ["no_changes"]


def test_asking_twice_with_one_id_is_asking_once():
    die(5)
    key = uuid7()
    first, second = retry_all(id=key), retry_all(id=key)
    assert first == second
    assert carry_out(first).done == 5
    assert retry_all(id=key).state == "done"
    assert BulkOperation.objects.count() == 1
    assert AuditEntry.objects.filter(action="bulk_retry_requested").count() == 1


def test_two_clicks_at_once_are_one_operation():
    die(5)
    key = uuid7()
    in_threads(lambda number: retry_all(id=key), 4)
    assert list(BulkOperation.objects.values_list("id", flat=True)) == [key]


def test_an_id_cannot_stand_for_two_requests():
    key = uuid7()
    retry_all(id=key)
    with pytest.raises(InvalidOption, match=str(key)):
        start_bulk("discard", DeadFilter(), actor=ANNA, id=key)
    with pytest.raises(InvalidOption, match="another request"):
        retry_all(DeadFilter(type="a"), id=key)


@pytest.mark.parametrize(
    ("terms", "named"),
    [
        ({"spread": timedelta(seconds=-1)}, "spread"),
        ({"spread": 5}, "spread"),
        ({"canary": 101}, "canary"),
        ({"canary": -1}, "canary"),
        ({"canary": True}, "canary"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_written(terms, named):
    for act in (retry_all, lambda **terms: preview_bulk("retry", DeadFilter(), **terms)):
        with pytest.raises(InvalidOption, match=named):
            act(**terms)
    assert not BulkOperation.objects.exists()


def test_discarding_has_no_canary_and_there_is_no_third_kind():
    with pytest.raises(InvalidOption, match="canary"):
        start_bulk("discard", DeadFilter(), actor=ANNA, canary=1)
    with pytest.raises(InvalidOption, match="purge"):
        start_bulk("purge", DeadFilter(), actor=ANNA)


@pytest.mark.parametrize(
    ("terms", "named"),
    [
        ({"reason": "exausted"}, "Did you mean 'exhausted'"),
        ({"type": 5}, "type"),
        ({"error": "a\x00b"}, "NUL"),
        ({"failed_from": ago(hours=1).replace(tzinfo=None)}, "time zone"),
        ({"ids": tuple(uuid7() for _ in range(501))}, "501"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(terms, named):
    with pytest.raises(InvalidOption, match=named):
        DeadFilter(**terms)


def test_a_preview_says_what_would_happen_and_changes_nothing():
    die(3, type="a")
    preview = preview_bulk("retry", DeadFilter(type="a"), spread=timedelta(minutes=10), canary=2)
    assert str(preview) == ("3 jobs will be retried, 2 first and the rest when confirmed, spread over 0:10:00: type a")
    assert preview_bulk("discard", DeadFilter()).count == 3
    assert whereabouts()["DeadJob"] == 3
    assert not BulkOperation.objects.exists()


@on_postgresql
def test_a_preview_that_would_count_for_too_long_says_so(monkeypatch):
    from django_jobs.operations import dead_count as count_module

    die(1)
    monkeypatch.setattr(count_module, "PATIENCE", timedelta(milliseconds=50))
    monkeypatch.setattr(DeadFilter, "dead_jobs", lambda self: DeadJob.objects.extra(where=["pg_sleep(20) IS NOT NULL"]))
    with transaction.atomic():
        preview = preview_bulk("retry", DeadFilter(tenant="acme"))
        assert DeadJob.objects.count() == 1
    assert preview.count is None
    assert "unknown number" in str(preview)


def test_a_request_that_is_rolled_back_was_not_made():
    with transaction.atomic():
        retry_all()
        transaction.set_rollback(True)
    assert not BulkOperation.objects.exists()
    assert not AuditEntry.objects.exists()
