"""Hostile payloads: refused at the call with the field's path, by every way to enqueue, and nothing is written."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy

from django_jobs import enqueue, job_context
from django_jobs.exceptions import InvalidOption, InvalidPayload
from django_jobs.models import IdempotencyKey, Job
from tests.operations.handlers import anything, note
from tests.payloads import nested

pytestmark = pytest.mark.django_db

WAYS = {
    "one": lambda handle, payload: handle.enqueue(**payload),
    "async": lambda handle, payload: async_to_sync(handle.aenqueue)(**payload),
    "with key": lambda handle, payload: handle.using(idempotency_key="k").enqueue(**payload),
    "by name": lambda handle, payload: enqueue(handle.job_type.name, payload),
    "many": lambda handle, payload: handle.enqueue_many([payload]),
    "many with keys": lambda handle, payload: handle.enqueue_many([payload], idempotency_keys=["k"]),
}

HOSTILE = {
    "NUL in a value": ("\0", "value contains"),
    "NUL in a key": ({"a\0": 1}, "a key of value contains"),
    "NUL in a nested list": ([["a", {"b": "\0"}]], r"value\[0\]\[1\].b contains"),
    "half a surrogate pair in a value": ("\ud800", "value contains"),
    "half a surrogate pair in a key": ({"\udfff": 1}, "a key of value contains"),
    "not a number": (float("nan"), "value is not a finite number"),
    "infinity": ([float("inf")], r"value\[0\] is not a finite number"),
    "too many digits": (10**5000, "4300 digits"),
    "a UUID": (UUID(int=1), "value would come back as str"),
    "a date": (date(2026, 1, 1), "value would come back as str"),
    "a naive datetime": (datetime(2026, 1, 1), "value would come back as str"),  # noqa: DTZ001
    "a negative timedelta": (timedelta(days=-1), "value would come back as str"),
    "a decimal": (Decimal("1.10"), "value would come back as str"),
    "a lazy translation": (gettext_lazy("hello"), "value is a lazy translation"),
    "a tuple": ((1, 2), "value would come back as list"),
    "a set": ({1}, "value would come back as list"),
    "integer keys": ({1: "a"}, "the keys of value"),
    "a model instance": (Group(name="staff"), "value is an instance of the model Group; pass its primary key"),
    "an object": (object(), "value cannot be stored as JSON"),
    "a function": (len, "value cannot be stored as JSON"),
    "too many bytes": ("x" * (256 * 1024 + 1), "above the limit of 262,144; pass a reference instead"),
    "too deep": (nested(5_000), "deep"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_payload_is_refused_and_nothing_is_written(way, name):
    value, reason = HOSTILE[name]
    with pytest.raises(InvalidPayload, match=reason):
        WAYS[way](anything, {"value": value})
    assert not Job.objects.exists()
    assert not IdempotencyKey.objects.exists()


WRONG = {
    "an unknown field": ({"txt": "a"}, "txt.*text"),
    "the wrong type": ({"number": "1"}, "number: input should be a valid integer"),
    "a boolean for a number": ({"number": True}, "number: input should be a valid integer"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRONG)
def test_a_payload_that_does_not_fit_the_handler_is_refused(way, name):
    payload, reason = WRONG[name]
    with pytest.raises(InvalidPayload, match=reason):
        WAYS[way](note, payload)
    assert not Job.objects.exists()


@pytest.mark.parametrize("payload", [[], [("text", "a")], "text", 5, {"text"}], ids=repr)
def test_a_payload_that_is_no_dict_is_refused(payload):
    with pytest.raises(InvalidPayload, match="must be a dict of field names to values"):
        enqueue("operations.note", payload)
    with pytest.raises(InvalidPayload, match=r"Payload number 0: .*must be a dict"):
        note.enqueue_many([payload])


def test_field_names_that_are_no_strings_are_refused():
    with pytest.raises(InvalidPayload):
        enqueue("operations.note", {1: "a"})
    with pytest.raises(InvalidPayload):
        enqueue("operations.note", {"text\0": "a"})


def test_no_payload_by_name_is_an_empty_one():
    enqueue("operations.note")
    enqueue("operations.note", None)
    assert [job.payload for job in Job.objects.all()] == [{}, {}]


def test_the_limit_is_in_bytes_and_reached_exactly(settings):
    settings.DJANGO_JOBS = {"QUEUES": ["default"], "MAX_PAYLOAD_BYTES": 256}
    frame = len('{"text":""}')
    note.enqueue(text="x" * (256 - frame))
    for text in ("x" * (257 - frame), "ü" * (129 - frame // 2)):
        with pytest.raises(InvalidPayload, match="above the limit of 256"):
            note.enqueue(text=text)
    assert Job.objects.count() == 1


@pytest.mark.parametrize("values", [{"request_id": "a\0"}, {"request_id": "\ud800"}, {"request_id": 5}], ids=ascii)
@pytest.mark.parametrize("way", WAYS)
def test_a_context_that_cannot_be_stored_is_refused(way, values):
    with job_context(**values), pytest.raises(InvalidOption, match="context"):
        WAYS[way](note, {"text": "a"})
    assert not Job.objects.exists()
