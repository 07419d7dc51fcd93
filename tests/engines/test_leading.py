"""The leadership of maintenance: one process at a time, by the database's clock, and what the leader sees."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from django_jobs.engines.postgresql import leading
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.models import BulkOperation, Leadership, Schedule
from django_jobs.operations.dead_group_counts import fold_changes
from tests.factories import DeadJobFactory, JobFactory, QueueFactory
from tests.operations.support import on_postgresql
from tests.waiting import wait_for

from .support import in_threads, own_session

LEASE = timedelta(seconds=10)


def leader():
    return Leadership.objects.get()


def let_the_leadership_lapse(by=LEASE):
    Leadership.objects.update(expires_at=F("expires_at") - by)


def test_the_first_that_looks_leads_and_the_others_learn_when_they_may_try_again(open_session):
    assert open_session("a").look(LEASE).leads
    other = open_session("b").look(LEASE)
    assert not other.leads
    assert timedelta(seconds=5) < other.free_in <= LEASE
    assert leader().holder == "a"


def test_of_many_that_look_at_once_one_leads(transactional_db):
    led = []

    def look(number):
        with own_session(f"worker-{number}") as session:
            if session.look(LEASE).leads:
                led.append(f"worker-{number}")

    in_threads(look, 6)
    assert led == [leader().holder]


def test_a_leader_that_went_silent_is_followed_and_the_token_grows(open_session):
    first, second = open_session("a"), open_session("b")
    first.look(LEASE)
    token = leader().token
    let_the_leadership_lapse()
    assert second.look(LEASE).leads
    assert (leader().holder, leader().token) == ("b", token + 1)
    assert not first.look(LEASE).leads


@on_postgresql
def test_a_leader_that_stands_still_in_the_middle_of_its_look_does_not_keep_the_others_out(open_session):
    """Frozen, or its machine is gone: the server would hold its locks for two hours."""
    first, second = open_session("a", lease=LEASE), open_session("b", lease=LEASE)
    first.look(LEASE)
    let_the_leadership_lapse()
    with first._available() as frozen:
        frozen.execute("BEGIN")
        assert leading._lead(frozen, first.config, LEASE) is None
        wait_for(lambda: leads(second), timeout=30, message="the locks to be let go")
    with pytest.raises(EngineUnavailable):
        first.look(LEASE)
    assert not first.look(LEASE).leads


def leads(session):
    try:
        return session.look(LEASE).leads
    except EngineUnavailable:
        return False


def test_a_leader_renews_before_its_lease_ends_and_keeps_its_token(open_session):
    session = open_session("a")
    session.look(LEASE)
    before = leader()
    session.look(LEASE)
    assert leader().expires_at == before.expires_at
    let_the_leadership_lapse(timedelta(seconds=5))
    session.look(LEASE)
    assert leader().expires_at >= before.expires_at
    assert leader().token == before.token


@pytest.mark.parametrize("holder", ["a", "b"])
def test_when_the_clock_was_set_back_the_old_term_does_not_count(open_session, holder):
    """Whether its holder lives or not; else nobody would lead for as long as the clock was ahead."""
    open_session("a").look(LEASE)
    let_the_leadership_lapse(-timedelta(hours=1))
    assert open_session(holder).look(LEASE).leads
    assert open_session("c").look(LEASE).free_in <= LEASE


def test_a_leader_that_resigns_can_be_followed_at_once(open_session):
    first, second = open_session("a"), open_session("b")
    first.look(LEASE)
    assert second.resign() is False
    assert first.resign() is True
    assert first.resign() is False
    assert second.look(LEASE).leads


def test_at_rest_there_is_nothing_to_do(session):
    look = session.look(LEASE)
    assert (look.next_due, look.next_slot, look.lapsed, look.waiting) == (None, None, False, frozenset())


def test_the_leader_sees_when_the_next_job_of_any_queue_is_due(session):
    for minutes, queue in ((20, "default"), (5, "urgent"), (10, "bulk")):
        JobFactory(scheduled=True, queue=queue, priority=minutes, run_at=timezone.now() + timedelta(minutes=minutes))
    assert timedelta(minutes=4, seconds=50) < session.look(LEASE).next_due <= timedelta(minutes=5)
    JobFactory(due=True, queue="bulk")
    assert session.look(LEASE).next_due <= timedelta(0)


def test_the_leader_sees_leases_that_ran_out(session):
    JobFactory(processing=True)
    assert session.look(LEASE).lapsed is False
    JobFactory(lapsed=True)
    assert session.look(LEASE).lapsed is True


def test_the_leader_sees_what_is_to_be_done_for_dead_jobs(session):
    fold_changes()
    look = session.look(LEASE)
    assert (look.bulk, look.dead_changes) == (False, False)
    DeadJobFactory()
    BulkOperation.objects.create(kind="retry", filter={}, state="canary")
    look = session.look(LEASE)
    assert (look.bulk, look.dead_changes) == (False, True)
    BulkOperation.objects.update(state="running")
    assert session.look(LEASE).bulk is True


def test_a_follower_learns_whether_the_leader_is_of_its_build(open_session):
    open_session("a", build="one").look(LEASE)
    assert open_session("b", build="one").look(LEASE).same_build is True
    other = open_session("c", build="two")
    assert other.look(LEASE).same_build is False
    let_the_leadership_lapse()
    assert other.look(LEASE).leads
    assert open_session("d", build="two").look(LEASE).same_build is True


def test_the_leader_sees_when_a_schedule_is_due(session):
    Schedule.objects.create(name="nightly", type="noop", cron="0 3 * * *")
    assert session.look(LEASE).next_slot <= timedelta(0)


@on_postgresql
def test_ready_jobs_are_named_only_beside_sleepers(session, open_session):
    for queue in ("default", "urgent", "bulk"):
        JobFactory(queue=queue)
    QueueFactory(name="bulk", paused=True)
    JobFactory(queue="held", lost_runs=1)
    assert session.look(LEASE).waiting == frozenset()
    assert open_session("sleeper").lie_down(["default"])
    assert session.look(LEASE).waiting == {"default", "urgent"}
