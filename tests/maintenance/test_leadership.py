"""One process does what one is enough for; which one, nobody has to care."""

from datetime import timedelta

import pytest

from django_jobs.engines.protocol import LONGEST_TERM, EngineUnavailable
from django_jobs.engines.values import Look
from django_jobs.maintenance.lookout import Lookout
from django_jobs.maintenance.service import Maintenance
from django_jobs.maintenance.stager import SHORTEST
from django_jobs.models import Leadership
from tests.engines.support import own_session
from tests.maintenance.test_services import StubService, StubSession
from tests.operations.support import committing, on_postgresql
from tests.waiting import wait_for
from tests.worker.embedded import running_worker

SECOND = timedelta(seconds=1)


class LookingSession(StubSession):
    def __init__(self, look):
        super().__init__()
        self.answer = look
        self.resigned = 0

    def look(self, lease):
        return self.answer

    def resign(self):
        self.resigned += 1
        return True


@pytest.fixture
def hastened():
    return []


@pytest.fixture
def lookout(hastened):
    return Lookout(2 * SECOND, 60 * SECOND, ("default", "bulk"), lambda name, seconds: hastened.append(name))


def refuse(lease):
    raise EngineUnavailable("gone")


def test_a_look_that_is_not_answered_is_an_outage_until_the_next_one_is(lookout):
    session = LookingSession(Look(leads=True))
    session.look = refuse
    with pytest.raises(EngineUnavailable):
        lookout.run_once(session)
    assert lookout.in_outage
    lookout.run_once(LookingSession(Look(leads=False, free_in=SECOND)))
    assert not lookout.in_outage


@pytest.mark.parametrize(
    ("look", "pause"),
    [
        (Look(leads=True), 2 * SECOND),
        (Look(leads=True, next_due=SECOND), SECOND),
        (Look(leads=True, next_due=3 * SECOND, next_slot=SECOND), SECOND),
        (Look(leads=True, next_due=-SECOND), 2 * SECOND),
        (Look(leads=True, next_due=timedelta(microseconds=1)), SHORTEST),
    ],
    ids=str,
)
def test_a_leader_looks_again_when_the_next_thing_is_due(lookout, look, pause):
    lookout.run_once(LookingSession(look))
    assert lookout.pause == pause


@pytest.mark.parametrize(
    ("look", "names"),
    [
        (Look(leads=True), []),
        (Look(leads=True, next_due=timedelta(0)), ["stager"]),
        (Look(leads=True, next_due=SECOND, next_slot=-SECOND), ["firing"]),
        (Look(leads=True, lapsed=True), ["rescuer"]),
        (Look(leads=True, bulk=True), ["bulk runner"]),
        (Look(leads=True, dead_changes=True), ["dead group folder"]),
        (Look(leads=False, free_in=SECOND, same_build=False), ["firing"]),
        (Look(leads=False, lapsed=True, next_due=timedelta(0)), []),
    ],
    ids=str,
)
def test_those_that_have_something_to_do_get_a_turn(lookout, hastened, look, names):
    lookout.run_once(LookingSession(look))
    assert hastened == names


def test_one_sleeper_of_each_queue_with_waiting_jobs_is_woken(lookout):
    session = LookingSession(Look(leads=True, waiting=frozenset({"bulk", "default"})))
    lookout.run_once(session)
    assert session.woken == ["bulk", "default"]


def test_a_follower_asks_again_when_the_leaders_lease_ends(lookout):
    lookout.run_once(LookingSession(Look(leads=False, free_in=7 * SECOND)))
    assert 7 * SECOND <= lookout.pause <= 7 * SECOND + LONGEST_TERM / 2
    assert not lookout.leads()


def test_a_follower_is_covered_while_a_leader_of_its_build_leads(lookout):
    assert not lookout.is_covered(), "nobody has been asked yet"
    for look, covered in (
        (Look(leads=False, free_in=SECOND), True),
        (Look(leads=False, free_in=SECOND, same_build=False), False),
        (Look(leads=True), False),
    ):
        lookout.run_once(LookingSession(look))
        assert lookout.is_covered() is covered


def test_a_leader_that_is_no_longer_sure_does_not_lead(lookout, monkeypatch):
    lookout.run_once(LookingSession(Look(leads=True)))
    assert lookout.leads()
    now = lookout._leads_until
    monkeypatch.setattr("django_jobs.maintenance.lookout.clock.monotonic", lambda: now)
    assert not lookout.leads()


def test_the_leaderships_lease_leaves_time_for_contact_before_the_jobs_of_a_dead_leader_lapse():
    for lease in (6, 60, 600):
        lookout = Lookout(SECOND, lease * SECOND, (), lambda name, seconds: None)
        grace = lease * SECOND / 3
        assert lookout._lease * 1.5 + grace < lease * SECOND * 2 / 3
        assert lookout._lease <= LONGEST_TERM


def test_a_leader_that_ends_resigns_and_wakes_the_others(lookout):
    session = LookingSession(Look(leads=True))
    lookout.run_once(session)
    lookout.close(session)
    assert (session.resigned, session.woken) == (1, ["default", "bulk"])


def test_a_follower_that_ends_tells_nobody(lookout):
    session = LookingSession(Look(leads=False, free_in=SECOND))
    lookout.run_once(session)
    lookout.close(session)
    assert (session.resigned, session.woken) == (0, [])


def test_services_of_the_leader_run_while_it_leads_and_no_longer():
    leads = []
    mine, shared = StubService("own"), StubService("the leader's")
    maintenance = Maintenance(StubSession, [mine], leading=[shared], leads=lambda: bool(leads))
    maintenance.start()
    wait_for(lambda: mine.turns > 3)
    assert shared.turns == 0
    leads.append(1)
    wait_for(lambda: shared.turns > 3)
    leads.clear()
    turns = mine.turns
    wait_for(lambda: mine.turns > turns + 3)
    turns, seen = mine.turns, shared.turns
    wait_for(lambda: mine.turns > turns + 3)
    maintenance.stop()
    assert shared.turns == seen
    assert (mine.closed, shared.closed) == (1, 1)


class OnRequest(StubService):
    pause = None


def test_a_service_without_a_pause_waits_until_it_is_hastened():
    service, other = OnRequest("on request"), StubService("other")
    maintenance = Maintenance(StubSession, [service, other])
    maintenance.start()
    wait_for(lambda: other.turns > 3)
    assert service.turns == 0
    maintenance.hasten("on request")
    maintenance.hasten("nobody")
    wait_for(lambda: service.turns == 1)
    turns = other.turns
    wait_for(lambda: other.turns > turns + 3)
    maintenance.stop()
    assert service.turns == 1


def test_a_service_that_is_hastened_during_its_turn_gets_another():
    class Again(OnRequest):
        def run_once(self, session):
            if self.turns == 0:
                maintenance.hasten("again")
            return super().run_once(session)

    service = Again("again")
    maintenance = Maintenance(StubSession, [service])
    maintenance.start()
    maintenance.hasten("again")
    wait_for(lambda: service.turns == 2)
    maintenance.stop()


@committing
def test_of_several_workers_one_leads_and_another_follows_when_it_stops(settings):
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"LEASE": 60, "POLL_EVERY": 600}
    with running_worker() as first:
        wait_for(lambda: Leadership.objects.filter(holder=first.process.id).exists())
        with running_worker() as second:
            wait_for(lambda: second.posture == "asleep" or second.process._session.peek_every)
            first.stop()
            first.join()
            # At once on PostgreSQL, where a sleeper is woken; elsewhere when the lease would have ended.
            timeout = 8 if on_postgresql.args == (False,) else 20
            led = Leadership.objects.filter(holder=second.process.id)
            wait_for(led.exists, timeout=timeout, message="the other worker to lead")


@on_postgresql
@committing
def test_a_leader_that_resigns_is_followed_long_before_its_lease_would_have_ended(settings):
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"POLL_EVERY": 600}
    with own_session("leader") as leader, running_worker() as follower:
        leader.look(timedelta(hours=1))
        wait_for(lambda: follower.posture == "asleep")
        lookout = Lookout(SECOND, 60 * SECOND, ("default",), lambda name, seconds: None)
        lookout._leads_until = float("inf")
        wait_for(lambda: Leadership.objects.filter(holder__in=["leader", follower.process.id]).exists())
        Leadership.objects.update(holder="leader", expires_at="2100-01-01T00:00:00Z")
        lookout.close(leader)
        wait_for(lambda: Leadership.objects.filter(holder=follower.process.id).exists())
