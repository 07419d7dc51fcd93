from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import JobFactory, QueueFactory

from .support import claim, claim_one, finished, settle

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timedelta(0)
HOUR = timedelta(hours=1)


def test_nothing_is_outstanding_in_an_empty_queue(session):
    assert session.outstanding(["default"], NOW) is False
    assert session.outstanding([], NOW) is False


@pytest.mark.parametrize("kind", [{}, {"lost_runs": 1}, {"due": True}, {"processing": True}, {"lapsed": True}])
def test_work_of_the_named_queues_is_outstanding(session, kind):
    JobFactory(queue="bulk", **kind)
    assert session.outstanding(["default", "bulk"], NOW) is True
    assert session.outstanding(["default"], NOW) is False


def test_scheduled_work_counts_within_the_horizon(session):
    JobFactory(scheduled=True, run_at=timezone.now() + HOUR)
    assert session.outstanding(["default"], HOUR / 2) is False
    assert session.outstanding(["default"], 2 * HOUR) is True


@pytest.mark.parametrize("kind", [{}, {"lost_runs": 1}, {"due": True}])
def test_what_waits_in_a_paused_queue_does_not_count(session, kind):
    QueueFactory(paused=True)
    JobFactory(**kind)
    assert session.outstanding(["default"], NOW) is False


def test_what_runs_counts_although_its_queue_is_paused(session):
    QueueFactory(paused=True)
    JobFactory(processing=True)
    assert session.outstanding(["default"], NOW) is True


def test_what_waits_counts_once_the_pause_is_over(session):
    QueueFactory(paused=True, resume_at=timezone.now() - timedelta(seconds=1))
    JobFactory()
    assert session.outstanding(["default"], NOW) is True


# Leases by the table


def test_a_worker_can_ask_for_all_it_holds(open_session):
    session, other = open_session("w-1"), open_session("w-2")
    JobFactory.create_batch(5)
    mine, _ = claim(session, limit=3), claim(other, limit=2)
    done, *held = mine
    settle(session, finished(done))
    assert session.my_leases() == {job.id: job.token for job in held}


def test_a_worker_that_holds_nothing_is_told_so(session, open_session):
    JobFactory.create_batch(2)
    claim_one(open_session("other"))
    assert session.my_leases() == {}
