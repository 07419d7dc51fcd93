"""What travels with a job besides its payload."""

import asyncio
import contextvars

import pytest
from asgiref.sync import async_to_sync

from django_jobs.context import adopt_context, current_context, job_context
from django_jobs.models import Job
from tests.operations.handlers import note

pytestmark = pytest.mark.django_db


def contexts():
    return list(Job.objects.order_by("id").values_list("context", flat=True))


def test_a_job_carries_the_context_it_was_enqueued_in():
    with job_context(request_id="r-1", user="7"):
        note.enqueue()
        note.enqueue_many([{}, {}])
        async_to_sync(note.aenqueue)()
    note.enqueue()
    assert contexts() == [{"request_id": "r-1", "user": "7"}] * 4 + [{}]


def test_an_inner_context_adds_to_the_outer_one_and_ends_with_its_block():
    with job_context(request_id="r-1", user="7"):
        with job_context(user="8", trace="t"):
            note.enqueue()
        note.enqueue()
    assert contexts() == [{"request_id": "r-1", "user": "8", "trace": "t"}, {"request_id": "r-1", "user": "7"}]


def test_a_context_ends_with_an_exception_too():
    with pytest.raises(ZeroDivisionError), job_context(request_id="r-1"):
        raise ZeroDivisionError
    assert current_context() == {}


def test_the_context_of_one_call_adds_to_the_one_around():
    with job_context(request_id="r-1", user="7"):
        note.using(context={"user": "8"}).enqueue()
    note.using(context={"user": "8"}).enqueue()
    assert contexts() == [{"request_id": "r-1", "user": "8"}, {"user": "8"}]


def test_any_text_can_be_in_a_context():
    text = 'Ωμέγα "quoted" \\back\\ \t\n\r %s {} \u2028 \U0001f600 \\N'
    with job_context(request_id=text):
        note.enqueue()
        note.enqueue_many([{}])
    assert contexts() == [{"request_id": text}] * 2


def test_a_change_to_what_current_context_gave_changes_nothing():
    with job_context(request_id="r-1"):
        current_context()["request_id"] = "r-2"
        assert current_context() == {"request_id": "r-1"}


def test_a_run_replaces_the_context_in_its_own_copy_only():
    with job_context(request_id="r-1"):
        contextvars.copy_context().run(adopt_context, {"request_id": "r-2"})
        assert current_context() == {"request_id": "r-1"}


def test_concurrent_tasks_do_not_see_each_others_context():
    async def main():
        seen = {}

        async def one(name):
            with job_context(name=name):
                await asyncio.sleep(0)  # the other task has its turn
                seen[name] = current_context()

        await asyncio.gather(one("a"), one("b"))
        return seen

    assert asyncio.run(main()) == {"a": {"name": "a"}, "b": {"name": "b"}}
