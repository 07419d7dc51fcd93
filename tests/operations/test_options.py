"""The options of one enqueueing: what wins, what is refused, and that nothing is written then."""

import enum

import pytest
from django.utils.safestring import mark_safe

from django_jobs import enqueue
from django_jobs.exceptions import EnqueueError, InvalidOption, UnknownJobType, UnknownQueue
from django_jobs.models import Job
from tests.operations.handlers import note, urgent

pytestmark = pytest.mark.django_db


class Lane(str, enum.Enum):  # noqa: UP042 - the old way, whose str() is not the value
    BULK = "bulk"


class Weight(int, enum.Enum):
    HEAVY = 7


def stored(job):
    return Job.objects.get(id=job.id)


def both_ways(handle):
    return [stored(handle.enqueue()), *map(stored, handle.enqueue_many([{}]))]


def test_a_plain_job_follows_the_settings():
    for job in both_ways(note):
        assert (job.queue, job.priority, job.max_attempts, job.tenant) == ("default", 0, 12, "")
        assert (job.type, job.attempts, job.payload, job.context) == ("operations.note", 0, {}, {})


def test_a_job_follows_its_type():
    for job in both_ways(urgent):
        assert (job.queue, job.priority, job.max_attempts) == ("urgent", 5, 3)


def test_the_options_win_over_the_type():
    handle = urgent.using(queue="bulk", priority=-1, max_attempts=1, tenant="acme")
    for job in both_ways(handle):
        assert (job.queue, job.priority, job.max_attempts, job.tenant) == ("bulk", -1, 1, "acme")


def test_priority_zero_wins_over_the_type():
    for job in both_ways(urgent.using(priority=0)):
        assert job.priority == 0


def test_a_default_queue_is_a_setting(settings):
    settings.DJANGO_JOBS = {"QUEUES": ["default", "bulk"], "DEFAULT_QUEUE": "bulk"}
    for job in both_ways(note):
        assert job.queue == "bulk"


def test_using_makes_a_copy():
    changed = note.using(priority=3)
    changed.using(tenant="acme")
    assert note.options.priority is None
    assert changed.options.tenant == ""


def test_enum_members_and_strings_of_other_types_are_stored_as_plain_values():
    handle = note.using(queue=Lane.BULK, priority=Weight.HEAVY, max_attempts=Weight.HEAVY, tenant=mark_safe("acme"))
    for job in both_ways(handle):
        assert (job.queue, job.priority, job.max_attempts, job.tenant) == ("bulk", 7, 7, "acme")


@pytest.mark.parametrize("priority", [-32768, 32767])
def test_the_widest_priorities_are_stored(priority):
    for job in both_ways(note.using(priority=priority)):
        assert job.priority == priority


@pytest.mark.parametrize("tenant", ["t" * 200, "Ωμέγα", "a\tb\nc\\d'e\"f%s", "\\N", "\\."], ids=ascii)
def test_any_text_can_be_a_tenant(tenant):
    for job in both_ways(note.using(tenant=tenant)):
        assert job.tenant == tenant


REFUSED = [
    ({"priority": 32768}, "priority must be a whole number from -32768 to 32767, not 32768"),
    ({"priority": -32769}, "priority"),
    ({"priority": 1.0}, "priority"),
    ({"priority": True}, "priority"),
    ({"priority": "5"}, "priority"),
    ({"max_attempts": 0}, "max_attempts must be a whole number from 1 to 32000, not 0"),
    ({"max_attempts": 32001}, "max_attempts"),
    ({"max_attempts": True}, "max_attempts"),
    ({"max_attempts": "3"}, "max_attempts"),
    ({"tenant": "t" * 201}, "tenant must be a string of 0 to 200 characters"),
    ({"tenant": None}, "tenant"),
    ({"tenant": 7}, "tenant"),
    ({"tenant": "a\0"}, "tenant holds a NUL character"),
    ({"tenant": "\ud800"}, "tenant holds"),
    ({"context": []}, "context must be a dict of strings to strings"),
    ({"context": {"a": 1}}, "context must be"),
    ({"context": {1: "a"}}, "context must be"),
    ({"context": {"": "a"}}, "context name '' must be"),
    ({"context": {"a": "b" * 2001}}, r"context\['a'\] must be a string of 0 to 2000"),
    ({"context": {"a": "b\0"}}, r"context\['a'\] holds a NUL"),
    ({"context": {"a\ud800": "b"}}, "context name"),
    ({"prioriti": 1}, r"no option 'prioriti'\. Did you mean 'priority'\? Options: queue, priority, run_at"),
    ({"eta": 1}, "no option 'eta'"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=[ascii(row[0])[:40] for row in REFUSED])
def test_a_bad_option_is_refused(options, reason):
    with pytest.raises(InvalidOption, match=reason) as caught:
        note.using(**options)
    assert isinstance(caught.value, EnqueueError | ValueError)
    with pytest.raises(InvalidOption, match=reason):
        enqueue("operations.note", {}, **options)
    assert not Job.objects.exists()


def test_an_unknown_queue_names_the_nearest():
    with pytest.raises(
        UnknownQueue, match=r"'urgant' is not declared\. Did you mean 'urgent'\? Declared: default, urg"
    ):
        note.using(queue="urgant")
    with pytest.raises(UnknownQueue, match="Add it to DJANGO_JOBS"):
        enqueue("operations.note", {}, queue="")


@pytest.mark.parametrize("queue", [5, ["default"], ("default",), b"default", "DEFAULT", "default "], ids=repr)
def test_what_is_no_declared_queue_is_unknown(queue):
    with pytest.raises(UnknownQueue):
        note.using(queue=queue)


def test_a_type_whose_queue_is_no_longer_declared_is_refused(settings):
    settings.DJANGO_JOBS = {"QUEUES": ["default"]}
    with pytest.raises(UnknownQueue, match="'urgent' is not declared"):
        urgent.enqueue()
    with pytest.raises(UnknownQueue):
        urgent.enqueue_many([{}])
    assert not Job.objects.exists()


def test_an_unknown_type_names_the_nearest():
    with pytest.raises(UnknownJobType, match=r"'operations.noet'\. Did you mean 'operations.note'\? .*jobs\.py"):
        enqueue("operations.noet", {})


@pytest.mark.parametrize("name", ["", None, 5, note, ["operations.note"]], ids=["empty", "None", "5", "handle", "list"])
def test_what_is_no_name_of_a_type_is_unknown(name):
    with pytest.raises(UnknownJobType):
        enqueue(name, {})


def test_one_key_for_a_bulk_is_refused():
    with pytest.raises(InvalidOption, match="idempotency_keys="):
        note.using(idempotency_key="k").enqueue_many([{}])
