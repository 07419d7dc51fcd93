"""Pausing and resuming queues."""

from datetime import datetime, timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from django_jobs import pause, resume
from django_jobs.exceptions import InvalidOption, UnknownQueue
from django_jobs.models import Queue
from tests.operations.handlers import note, urgent
from tests.operations.support import claim, committing, session

pytestmark = committing


@pytest.fixture
def worker():
    with session() as opened:
        yield opened


def claimable(worker, queues=("default", "urgent")):
    return [job.queue for job in claim(worker, limit=10, queues=queues)]


def test_a_paused_queue_gives_no_jobs_and_others_go_on(worker):
    note.enqueue()
    urgent.enqueue()
    pause("default")
    assert claimable(worker) == ["urgent"]


def test_a_resumed_queue_gives_its_jobs(worker):
    note.enqueue()
    pause("default")
    resume("default")
    assert claimable(worker) == ["default"]


def test_a_pause_with_an_end_ends_by_itself(worker):
    note.enqueue()
    pause("default", until=timezone.now() + timedelta(hours=1))
    assert claimable(worker) == []
    Queue.objects.update(resume_at=F("resume_at") - timedelta(hours=2))
    assert claimable(worker) == ["default"]


def test_a_pause_until_the_past_is_over(worker):
    note.enqueue()
    pause("default", until=timezone.now() - timedelta(hours=1))
    assert claimable(worker) == ["default"]


def test_a_second_pause_changes_the_end(worker):
    pause("default", until=timezone.now() - timedelta(hours=1))
    pause("default")
    queue = Queue.objects.get()
    assert queue.resume_at is None
    assert abs(queue.paused_at - timezone.now()) < timedelta(seconds=5)
    note.enqueue()
    assert claimable(worker) == []


def test_a_resume_after_a_pause_with_an_end_clears_both():
    pause("default", until=timezone.now() + timedelta(hours=1))
    resume("default")
    queue = Queue.objects.get()
    assert (queue.paused_at, queue.resume_at) == (None, None)


def test_jobs_can_be_enqueued_to_a_paused_queue():
    pause("default")
    assert note.enqueue().status == "pending"


def test_resuming_twice_or_without_a_pause_does_nothing():
    resume("default")
    resume("default")
    assert not Queue.objects.exists()


def test_a_pause_that_rolls_back_did_not_happen():
    with transaction.atomic():
        pause("default")
        transaction.set_rollback(True)
    assert not Queue.objects.exists()


@pytest.mark.parametrize("function", [pause, resume])
def test_an_unknown_queue_names_the_nearest(function):
    with pytest.raises(UnknownQueue, match="Did you mean 'default'"):
        function("defualt")


@pytest.mark.parametrize("until", [datetime(2031, 1, 1), timedelta(hours=1), 5], ids=repr)  # noqa: DTZ001
def test_an_end_that_is_no_instant_is_refused(until):
    with pytest.raises(InvalidOption, match="until must be a datetime with a time zone"):
        pause("default", until=until)
    assert not Queue.objects.exists()
