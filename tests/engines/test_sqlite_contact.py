"""When a lapsed lease counts against its holder on SQLite: not while somebody kept all others from writing."""

from datetime import timedelta

import pytest

from django_jobs import clock
from django_jobs.engines.portable import connecting
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.models import Job
from tests.factories import JobFactory

from .support import retry_lost, write_lock_held

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    monkeypatch.setattr(connecting, "LOCK_TIMEOUT", 0.02)


def test_after_a_time_of_locks_nobody_is_rescued_at_once(open_session, monkeypatch):
    """Whoever holds a lease could not renew it either."""
    JobFactory(lapsed=True)
    start = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: start)
    rescuer = open_session("rescuer", lease=timedelta(seconds=3))
    rescuer.stage()
    monkeypatch.setattr(clock, "monotonic", lambda: start + 60)
    with write_lock_held(), pytest.raises(EngineUnavailable):
        rescuer.rescue(retry_lost)
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 62)
    assert len(rescuer.rescue(retry_lost)) == 1


def test_whoever_waited_for_the_lock_has_no_contact_yet(open_session, monkeypatch):
    """The holders of the leases waited as well, and could not renew them. What can be read meanwhile is no contact."""
    JobFactory(lapsed=True)
    start = clock.monotonic()
    monkeypatch.setattr(connecting, "LOCK_TIMEOUT", 20)
    rescuer = open_session("rescuer", lease=timedelta(seconds=3))
    with write_lock_held() as release:
        monkeypatch.setattr(clock, "monotonic", lambda: start)
        rescuer.stage()
        monkeypatch.setattr(clock, "monotonic", lambda: start + 60)
        rescuer.stage()
        monkeypatch.setattr(rescuer, "_transaction", lambda real=rescuer._transaction: release.set() or real())
        assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 60.9)
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 61.1)
    assert len(rescuer.rescue(retry_lost)) == 1


def test_a_leader_that_only_reads_that_it_leads_has_no_contact(open_session, monkeypatch):
    JobFactory(lapsed=True)
    start = clock.monotonic()
    leader = open_session("leader", lease=timedelta(seconds=3))
    lease = timedelta(minutes=10)
    assert leader.look(lease).leads
    monkeypatch.setattr(clock, "monotonic", lambda: start + 60)
    with write_lock_held():
        with pytest.raises(EngineUnavailable):
            leader.rescue(retry_lost)
        assert leader.look(lease).leads
    monkeypatch.setattr(clock, "monotonic", lambda: start + 62)
    assert list(leader.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 64)
    assert len(leader.rescue(retry_lost)) == 1


def test_a_rescuer_that_is_stopped_while_it_has_the_lock_takes_no_lease_that_ran_out_meanwhile(
    open_session, monkeypatch
):
    """Nobody could renew: it kept everybody from writing."""
    lapsed, held = JobFactory(lapsed=True), JobFactory(processing=True)
    start, now = clock.monotonic(), clock.now
    rescuer = open_session("rescuer", lease=timedelta(seconds=3))
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 1.5)
    real = rescuer._was_writable

    def stopped_for_an_hour(asked_at):
        monkeypatch.setattr(clock, "now", lambda: now() + timedelta(hours=1))
        return real(asked_at)

    monkeypatch.setattr(rescuer, "_was_writable", stopped_for_an_hour)
    assert [outcome.job_id for outcome in rescuer.rescue(retry_lost)] == [lapsed.id]
    assert Job.objects.get(pk=held.id).status == "processing"


def test_a_rescuer_whose_process_stood_still_has_no_contact_yet(open_session, monkeypatch):
    """Another session of that process may have had the write lock all the while."""
    JobFactory(lapsed=True)
    start = clock.monotonic()
    rescuer = open_session("rescuer", lease=timedelta(seconds=3))
    for seconds, rescued in ((0, 0), (60, 0), (60.9, 0), (61.1, 1)):
        monkeypatch.setattr(clock, "monotonic", lambda seconds=seconds: start + seconds)
        assert len(rescuer.rescue(retry_lost)) == rescued


def test_a_wait_longer_than_the_grace_ends_the_contact(open_session, monkeypatch):
    """It was granted in the end, but for so long nobody else could renew."""
    JobFactory(lapsed=True)
    start, times = clock.monotonic(), []
    rescuer = open_session("rescuer", lease=timedelta(seconds=3))
    monkeypatch.setattr(clock, "monotonic", lambda: start)
    assert list(rescuer.rescue(lambda lease: None)) == []
    times += [start + 0.5] * 4 + [start + 2] * 2
    monkeypatch.setattr(clock, "monotonic", lambda: times.pop(0))
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 2.9)
    assert list(rescuer.rescue(retry_lost)) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 3.1)
    assert len(rescuer.rescue(retry_lost)) == 1
