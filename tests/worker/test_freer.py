"""What a supervisor does for a dead child, in its own process: free, count, try again."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import Sum

from django_jobs.engines.config import EngineConfig
from django_jobs.models import Job, JobCount
from django_jobs.worker import freeing
from django_jobs.worker.freeing import Freer
from tests.factories import JobFactory
from tests.waiting import wait_for


@pytest.fixture
def freer():
    freer = Freer(EngineConfig(alias="default", worker="supervisor"), give_up=timedelta(seconds=30))
    freer.start()
    yield freer
    freer.close(20)
    assert not freer._thread.is_alive()


def lost():
    return list(JobCount.objects.order_by("type").values_list("process", "type", "outcome").annotate(Sum("count")))


def test_the_started_runs_of_the_dead_are_counted_as_lost_and_those_that_waited_are_not(freer):
    started = JobFactory.create_batch(2, processing=True, type="killer", locked_by="first")
    JobFactory(processing=True, type="waiting", locked_by="first")
    freer.free("first", "worker died: SIGKILL", frozenset(job.lease_token for job in started))
    wait_for(lambda: lost() == [("supervisor", "killer", "lost", 2)])
    JobFactory(processing=True, type="killer", locked_by="second")
    freer.free("second", "worker died: SIGKILL", None)
    wait_for(lambda: lost() == [("supervisor", "killer", "lost", 3)])
    assert not Job.objects.filter(status="processing").exists()


def test_what_could_not_be_counted_at_once_is_counted_later(freer, monkeypatch):
    refused, real = [], freeing.write_counts

    def write_counts(*arguments):
        if not refused:
            refused.append(arguments)
            raise OperationalError("not now")
        real(*arguments)

    monkeypatch.setattr(freeing, "write_counts", write_counts)
    monkeypatch.setattr(freeing, "RETRY_SECONDS", 0.01)
    JobFactory(processing=True, type="killer", locked_by="dead")
    freer.free("dead", "worker died: SIGKILL", None)
    wait_for(lambda: lost() == [("supervisor", "killer", "lost", 1)])
    assert refused
