"""Connections that die without a word: a firewall forgot them, a proxy hangs, the cable is out."""

import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connections
from django.db.models.functions import Now

from django_jobs import RunningJob, get_job
from django_jobs.engines import config, stand_alone
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.postgresql.session import PostgresqlSession
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.engines.values import ClaimRequest
from django_jobs.models import Job
from tests.engines.support import beside, own_session
from tests.operations.support import on_postgresql
from tests.tcp_proxy import BOTH, TO_CLIENT, TO_SERVER
from tests.waiting import wait_for
from tests.worker.elsewhere import behind_proxy, pointed_to
from tests.worker.embedded import EmbeddedWorker, running_worker

pytestmark = on_postgresql

DIRECTIONS = [(TO_SERVER,), (TO_CLIENT,), BOTH]


@pytest.fixture(autouse=True)
def little_patience(monkeypatch, configure):
    monkeypatch.setattr(config, "SHORTEST_PATIENCE", timedelta(seconds=1))
    configure(LEASE=6, POLL_EVERY=1)


@pytest.mark.parametrize("directions", DIRECTIONS, ids="+".join)
@pytest.mark.parametrize("call", ["tick", "renew", "stage", "can_listen"])
def test_a_call_that_gets_no_answer_costs_the_connection_and_the_next_one_has_another(directions, call):
    given = {"tick": ([], [ClaimRequest(queues=("default",), limit=1)]), "renew": ({},)}.get(call, ())
    with behind_proxy() as proxy, own_session(lease=timedelta(seconds=4)) as session:
        getattr(session, call)(*given)
        proxy.cut(*directions)
        began = time.monotonic()
        with pytest.raises(EngineUnavailable, match="has not answered for 1 s"):
            getattr(session, call)(*given)
        assert time.monotonic() - began < 5
        getattr(session, call)(*given)
        assert session.generation == 2


@pytest.mark.parametrize("directions", DIRECTIONS[:2], ids="+".join)
def test_a_run_keeps_its_lease_although_every_connection_of_its_worker_dies_silently(job, directions):
    runs, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(60)

    with behind_proxy() as proxy:
        cut_off = EmbeddedWorker()
        cut_off.start()
        try:
            enqueued = long.enqueue()
            wait_for(lambda: runs)
            proxy.cut(*directions)
            with running_worker():
                wait_for(lambda: renewed_after_lease(enqueued), timeout=30, message="a lease of the second connection")
                release.set()
                wait_for(lambda: get_job(enqueued.id).status == "succeeded", timeout=30)
        finally:
            release.set()
            cut_off.stop()
            cut_off.join()
    assert runs == [1]


def test_so_it_does_however_short_the_lease_is(job, monkeypatch, configure):
    """Shorter than what any other call may take."""
    monkeypatch.setattr(config, "SHORTEST_PATIENCE", timedelta(seconds=5))
    configure(LEASE=2)
    test_a_run_keeps_its_lease_although_every_connection_of_its_worker_dies_silently(job, BOTH)


@pytest.mark.parametrize(
    ("lease", "unanswered", "lapses"), [(12, 2, False), (12, 3, True), (4, 1, False), (4, 2, True)]
)
def test_so_many_renewals_in_a_row_may_stay_without_an_answer_and_no_more(
    job, monkeypatch, configure, lease, unanswered, lapses
):
    configure(LEASE=lease)
    real, failures, renewed, release = PostgresqlSession.renew, [], [], threading.Event()

    def renew(self, leases):
        """After the first success nothing is answered, so many times; then new connections are."""
        try:
            renewal = real(self, leases)
        except EngineUnavailable:
            failures.append(1)
            if len(failures) == unanswered:
                proxy.heal()
            raise
        if renewal.renewed:
            renewed.append(1)
            if len(renewed) == 1:
                proxy.cut(*BOTH, new=True)
        return renewal

    @job("long")
    def long():
        assert release.wait(60)

    connect_timeout = {"connect_timeout": max(lease // 4, 2)}  # as if OPTIONS did not name one
    with behind_proxy() as proxy, pointed_to(options=connect_timeout), running_worker():
        enqueued = long.enqueue()
        monkeypatch.setattr(PostgresqlSession, "renew", renew)
        lapsed = Job.objects.filter(pk=enqueued.id, locked_until__lt=Now())
        try:
            fate = wait_for(lambda: "lapsed" if lapsed.exists() else "renewed" * (len(renewed) > 1), timeout=30)
            assert fate == ("lapsed" if lapses else "renewed")
            assert len(failures) >= (unanswered - 1 if lapses else unanswered)
        finally:
            proxy.heal()
            release.set()


def test_a_renewal_waits_a_quarter_of_the_lease_and_other_calls_longer(monkeypatch):
    monkeypatch.setattr(config, "SHORTEST_PATIENCE", timedelta(seconds=5))
    renewing = EngineConfig(alias="default", lease=timedelta(seconds=2), renews=True)
    assert renewing.patience == timedelta(seconds=0.5)
    assert renewing.lock_patience < renewing.patience
    assert replace(renewing, renews=False).patience == timedelta(seconds=5)
    with behind_proxy() as proxy, own_session(lease=timedelta(seconds=4), renews=True) as session:
        session.renew({})
        proxy.cut(*BOTH)
        with pytest.raises(EngineUnavailable, match="has not answered for 1 s"):
            session.renew({})


def test_connecting_takes_no_longer_than_an_answer_may():
    waits = {2: 2, 12: 3, 20: 5, 60: 10}
    for lease, seconds in waits.items():
        renewing = EngineConfig(alias="default", lease=timedelta(seconds=lease), renews=True)
        with own_session(lease=renewing.lease, renews=True) as session:
            session.renew({})
            assert session._connection.info.get_parameters()["connect_timeout"] == str(seconds)


def parameters_of_session():
    with own_session() as session:
        session.renew({})
        return session._connection.info.get_parameters()


def parameters_of_maintenance():
    def connect():
        stand_alone(EngineConfig(alias="default"), timedelta(minutes=10))
        connections["default"].ensure_connection()
        found.update(connections["default"].connection.info.get_parameters())

    found = {}
    with beside(connect):
        pass
    return found


@pytest.mark.parametrize("parameters_of", [parameters_of_session, parameters_of_maintenance])
@pytest.mark.parametrize("options", [{}, {"keepalives_idle": 77, "tcp_user_timeout": 5000, "connect_timeout": 4}])
def test_a_peer_that_is_gone_is_noticed_within_25_seconds_unless_the_options_say_otherwise(parameters_of, options):
    ours = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 25_000}
    with pointed_to(options=options):
        found = parameters_of()
    expected = ours | {"connect_timeout": 10} | options
    assert {name: found.get(name) for name in expected} == {name: str(value) for name, value in expected.items()}


def renewed_after_lease(enqueued):
    """Has the run outlived the lease it was claimed with?"""
    return Job.objects.filter(
        pk=enqueued.id, locked_until__gt=Now(), run_at__lt=Now() - timedelta(seconds=7), attempts=1
    ).exists()


@pytest.mark.parametrize("directions", DIRECTIONS, ids="+".join)
def test_a_sleeper_whose_listening_connection_died_silently_is_back_within_its_poll_and_its_patience(noop, directions):
    with behind_proxy() as proxy, running_worker() as worker:
        wait_for(lambda: worker.posture == "asleep")
        proxy.cut(*directions)
        enqueued = noop.enqueue()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded", timeout=30)
        wait_for(lambda: worker.posture == "asleep", message="the new connection to be proven")


def test_while_nothing_answers_and_nothing_connects_the_worker_goes_on_trying(job, noop, caplog):
    runs, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(60)
        return "ended in the dark"

    with behind_proxy() as proxy, running_worker() as worker:
        enqueued = long.enqueue()
        wait_for(lambda: runs)
        proxy.cut(*BOTH, new=True)
        release.set()
        wait_for(lambda: "not available" in caplog.text, timeout=30)
        proxy.refuse()
        wait_for(lambda: "Leases could not be renewed" in caplog.text, timeout=30)
        assert worker.alive
        proxy.heal()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded", timeout=30)
        later = noop.enqueue()
        wait_for(lambda: get_job(later.id).status == "succeeded", timeout=30)
    assert (runs, get_job(enqueued.id).result, get_job(enqueued.id).attempts) == ([1], "ended in the dark", 1)
