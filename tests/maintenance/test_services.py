"""Maintenance in a worker: what it does, and that nothing of it can stop the rest."""

import threading
from datetime import timedelta

import psycopg
import pytest
from django.db import InterfaceError, InternalError, OperationalError, connection

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.engines import statements
from django_jobs.engines.config import SHORTEST_PATIENCE, EngineConfig
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.engines.values import Staging
from django_jobs.maintenance import reporter as reporter_module
from django_jobs.maintenance.counts import Counts
from django_jobs.maintenance.partitioner import Partitioner
from django_jobs.maintenance.reporter import Reporter
from django_jobs.maintenance.service import Maintenance
from django_jobs.maintenance.stager import SHORTEST, Stager
from django_jobs.maintenance.upkeep import SLOW_PATIENCE, Upkeep
from django_jobs.models import JobCount, Worker
from django_jobs.models.partitions import leaf_name, missing_partitions
from tests.operations.support import on_postgresql
from tests.waiting import wait_for


def read_only():
    """As Django passes it on."""
    error = InternalError("gone")
    error.__cause__ = psycopg.errors.ReadOnlySqlTransaction()
    return error


class StubSession:
    def __init__(self, staging=None):
        self.staging = staging or Staging()
        self.woken = []
        self.closed = False

    def stage(self):
        return self.staging

    def wake(self, queue):
        self.woken.append(queue)

    def close(self):
        self.closed = True


class StubService:
    pause = timedelta(milliseconds=1)

    def __init__(self, name, error=None):
        self.name = name
        self.error = error
        self.turns = 0
        self.closed = 0

    def run_once(self, session):
        self.turns += 1
        if self.error:
            raise self.error
        return 1

    def close(self, session):
        self.closed += 1
        if self.error:
            raise self.error


@pytest.mark.parametrize(
    "error", [RuntimeError("bug"), SystemExit(3), EngineUnavailable("gone"), OperationalError("gone")], ids=repr
)
def test_a_service_that_fails_is_logged_and_the_others_go_on(error, caplog):
    broken, fine = StubService("broken one", error), StubService("fine one")
    session = StubSession()
    maintenance = Maintenance(lambda: session, [broken, fine])
    maintenance.start()
    wait_for(lambda: broken.turns > 3 and fine.turns > 3)
    maintenance.stop()
    assert "broken one" in caplog.text
    assert "fine one" not in caplog.text
    assert (broken.closed, fine.closed, session.closed) == (1, 1, True)


@pytest.mark.parametrize(
    "error",
    [EngineUnavailable("gone"), OperationalError("gone"), InterfaceError("gone"), read_only()],
    ids=lambda error: type(error).__name__,
)
def test_an_outage_is_said_once_and_so_is_its_end(error, caplog):
    service = StubService("one of them", error)
    maintenance = Maintenance(StubSession, [service])
    maintenance.start()
    wait_for(lambda: service.turns > 3)
    service.error, seen = None, service.turns
    wait_for(lambda: service.turns > seen + 3)
    maintenance.stop()
    records = [record for record in caplog.records if "one of them" in record.getMessage()]
    assert [record.getMessage() for record in records] == [
        "The one of them cannot do its work, and tries again until it can: gone",
        "The one of them does its work again.",
    ]
    assert not any(record.exc_info for record in records)


def test_its_thread_beats_whenever_it_turns_whatever_fails_and_not_while_a_service_hangs():
    release, beats = threading.Event(), []

    class Hanging(StubService):
        def run_once(self, session):
            super().run_once(session)
            release.wait(60)

    broken, hanging = StubService("broken one", EngineUnavailable("gone")), Hanging("hanging one")
    maintenance = Maintenance(StubSession, [broken, hanging], beat=beats.append)
    maintenance.start()
    wait_for(lambda: hanging.turns)
    assert beats == [0.0, 0.0], "one for each service"
    release.set()
    wait_for(lambda: broken.turns > 5 and hanging.turns > 5)
    maintenance.stop()
    assert len(beats) > 10
    assert max(beats) <= 0.001, "and before each pause, which it tells"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ended_without_being_asked_has_died_and_one_that_was_asked_has_not():
    def refuse():
        raise RuntimeError("no session")

    broken, fine = Maintenance(refuse, []), Maintenance(StubSession, [])
    assert not broken.died
    for maintenance in (broken, fine):
        maintenance.start()
    wait_for(lambda: broken.died)
    assert not fine.died
    fine.stop()
    assert not fine.died


@pytest.mark.django_db(transaction=True)
def test_slow_services_have_time_that_prompt_ones_do_not(monkeypatch):
    """However short the lease is: a day's history is not read in a quarter of a second."""
    given = []
    monkeypatch.setattr("django_jobs.maintenance.upkeep.stand_alone", lambda config, patience: given.append(patience))
    config = EngineConfig(alias="default", worker="a", lease=timedelta(seconds=1))
    upkeep = Upkeep(get_settings(), config, own=[], judge=None, counts=Counts(), poke=lambda: None)
    upkeep.start()
    wait_for(lambda: len(given) == 3)
    upkeep.stop()
    assert sorted(given) == [SHORTEST_PATIENCE, SLOW_PATIENCE, SLOW_PATIENCE]


def test_stopping_does_not_wait_for_a_service_that_hangs():
    release = threading.Event()

    class Hanging(StubService):
        def run_once(self, session):
            self.turns += 1
            release.wait(60)

    hanging = Hanging("hanging one")
    maintenance = Maintenance(StubSession, [hanging])
    maintenance.start()
    wait_for(lambda: hanging.turns)
    maintenance.stop(timeout=0.1)
    release.set()
    wait_for(lambda: hanging.closed)


@pytest.mark.parametrize(
    ("next_due", "pause"),
    [
        (None, None),
        (timedelta(seconds=5), None),
        (timedelta(milliseconds=300), timedelta(milliseconds=300)),
        (timedelta(0), SHORTEST),
        (timedelta(seconds=-3), SHORTEST),
    ],
    ids=str,
)
def test_the_stager_comes_again_when_the_next_job_is_due_soon(next_due, pause):
    stager = Stager(timedelta(seconds=1), lambda: None)
    stager.run_once(StubSession(Staging(next_due=next_due)))
    assert stager.pause == pause


def test_the_stager_tells_its_own_loop_and_wakes_one_worker_of_each_queue():
    pokes = []
    session = StubSession(Staging(staged=3, queues=frozenset({"urgent", "bulk"})))
    assert Stager(timedelta(seconds=1), lambda: pokes.append(1)).run_once(session) == 3
    assert (session.woken, pokes) == (["bulk", "urgent"], [1])


def test_the_stager_tells_nobody_when_nothing_was_due():
    session = StubSession(Staging())
    Stager(timedelta(seconds=1), lambda: pytest.fail("poked")).run_once(session)
    assert session.woken == []


@pytest.fixture
def counts():
    return Counts()


@pytest.fixture
def reporter(counts, transactional_db):
    row = Worker(id="worker-1", host="h", pid=1, queues=[], version="0")
    return Reporter(row, "default", lambda: 7, counts)


def test_a_worker_is_shown_from_its_first_report_to_its_last(reporter):
    reporter.run_once(None)
    row = Worker.objects.get()
    assert (row.running, row.stopped_at) == (7, None)
    reporter.close(None)
    assert Worker.objects.get().stopped_at is not None


def test_a_worker_with_nothing_new_to_tell_is_seen_every_half_minute(reporter, monkeypatch):
    """As long as it works: who looks at the row counts on it."""
    monkeypatch.setattr(clock, "monotonic", lambda: 1000.0)
    reporter.run_once(None)
    first = Worker.objects.get().last_seen_at
    monkeypatch.setattr(clock, "monotonic", lambda: 1029.9)
    reporter.run_once(None)
    assert Worker.objects.get().last_seen_at == first
    monkeypatch.setattr(clock, "monotonic", lambda: 1030.0)
    reporter.run_once(None)
    assert Worker.objects.get().last_seen_at > first


def test_a_report_that_is_repeated_changes_nothing(reporter, counts, monkeypatch):
    counts.add("default", "noop", "succeeded", 5)
    monkeypatch.setattr(counts, "note_written", lambda written: None)
    for _ in range(3):
        assert reporter.run_once(None) == 1
    row = JobCount.objects.get()
    assert (row.count, row.total_ms, sum(row.histogram), row.process) == (1, 5, 1, "worker-1")


def test_counts_that_grow_are_written_over(reporter, counts):
    counts.add("default", "noop", "succeeded", 5)
    reporter.run_once(None)
    counts.add("default", "noop", "succeeded", 6)
    reporter.run_once(None)
    row = JobCount.objects.get()
    assert (row.count, row.total_ms) == (2, 11)
    assert reporter.run_once(None) == 0


def test_a_worker_that_is_registered_already_is_not_an_error(reporter):
    reporter.run_once(None)
    Reporter(Worker.objects.get(), "default", lambda: 8, Counts()).run_once(None)
    assert Worker.objects.get().running == 8


def test_a_row_that_was_deleted_is_made_again(reporter):
    reporter.run_once(None)
    Worker.objects.all().delete()
    reporter.close(None)
    assert Worker.objects.get().stopped_at is not None


def test_a_report_that_failed_is_news_still(reporter, monkeypatch):
    reporter.run_once(None)
    reporter._running = lambda: 8
    with monkeypatch.context() as patch:
        patch.setattr(reporter_module, "write_counts", lambda *_: (_ for _ in ()).throw(OperationalError("gone")))
        with pytest.raises(OperationalError):
            reporter.run_once(None)
    assert Worker.objects.get().running == 7
    reporter.run_once(None)
    assert Worker.objects.get().running == 8


@on_postgresql
def test_the_history_has_partitions_seven_days_ahead_and_those_that_are_there_are_left_alone(transactional_db):
    today = statements("default").server_time(connection).date()
    days = [today + timedelta(days=number) for number in range(-1, 8)]
    partitioner = Partitioner("default")
    partitioner.run_once(None)
    assert missing(days) == []
    for day in (days[2], days[-1]):
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {leaf_name(day)}")
    assert missing(days) == [days[2], days[-1]]
    assert partitioner.run_once(None) == 2
    assert missing(days) == []
    assert partitioner.run_once(None) == 0


def missing(days):
    with connection.cursor() as cursor:
        return missing_partitions(cursor, days)[1]


OWN = StubService("own")
SHARED = {
    "firing", "mender", "declarer", "lookout", "stager", "rescuer", "partitioner", "pruner", "observer", "watcher",
    "dead group folder", "bulk runner", "notifying",
}  # fmt: skip


@pytest.mark.parametrize(("shared", "names"), [(True, {"own"} | SHARED), (False, {"own", "absence"})])
def test_every_process_can_do_all_of_the_maintenance_unless_it_is_told_not_to(shared, names):
    config = EngineConfig(alias="default", worker="a")
    upkeep = Upkeep(get_settings(), config, own=[OWN], judge=None, counts=Counts(), poke=lambda: None, shared=shared)
    services = [service.name for thread in upkeep._threads for service in thread._services]
    assert len(services) == len(names)
    assert set(services) == names
