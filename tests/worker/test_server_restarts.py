"""A server of our own that stops and starts while jobs run: nothing is lost, and nothing runs twice."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections
from django.db.models.functions import Now

from django_jobs import RunningJob, create_schedule, get_job
from django_jobs.models import Job, ScheduleSlot
from tests.app.models import Mark
from tests.postgres_server import PostgresServer
from tests.waiting import wait_for
from tests.worker.elsewhere import other_server
from tests.worker.embedded import running_worker

pytestmark = pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no server")


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_the_server_in_mid_run_re_runs_nothing(job, mode, configure):
    configure(LEASE=10)
    runs, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob, n: int):
        runs.append(n)
        assert release.wait(60)
        Mark.objects.create(label=str(n))

    with PostgresServer(synchronous_commit="on") as server, other_server(server):
        jobs = [long.enqueue(n=n) for n in range(4)]
        with running_worker() as worker:
            wait_for(lambda: sorted(runs) == [0, 1, 2, 3])
            connections["default"].close()
            server.restart(mode)
            release.set()
            wait_for(lambda: all(status_if_reachable(one) == "succeeded" for one in jobs), timeout=40)
            later = long.enqueue(n=9)
            wait_for(lambda: get_job(later.id).status == "succeeded")
            assert worker.alive
        assert sorted(runs) == [0, 1, 2, 3, 9]
        assert sorted(Mark.objects.values_list("label", flat=True)) == ["0", "1", "2", "3", "9"]
        connections["default"].close()


def test_a_server_that_is_away_for_three_leases_starts_nothing_a_second_time(job, configure, caplog):
    configure(LEASE=3)
    runs, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob, n: int):
        runs.append(n)
        assert release.wait(60)

    @job("ends_meanwhile")
    def ends_meanwhile(run: RunningJob):
        runs.append("meanwhile")
        assert down.wait(60)
        return "told later"

    down = threading.Event()
    with PostgresServer(synchronous_commit="on") as server, other_server(server):
        jobs = [long.enqueue(n=n) for n in range(9)] + [ends_meanwhile.enqueue()]
        with running_worker(concurrency=10), running_worker(concurrency=10):
            wait_for(lambda: len(runs) == 10)
            connections["default"].close()
            server.halt("immediate")
            down.set()
            time.sleep(9)  # the outage: three leases
            server.launch()
            wait_for(lambda: status_if_reachable(jobs[-1]) == "succeeded", timeout=40)
            wait_for(lambda: all(lease_is_live(one) for one in jobs[:9]), timeout=20)
            release.set()
            wait_for(lambda: all(status_if_reachable(one) == "succeeded" for one in jobs), timeout=40)
        assert {get_job(one.id).attempts for one in jobs} == {1}
        connections["default"].close()
    assert sorted(map(str, runs)) == [*map(str, range(9)), "meanwhile"]
    assert "did not renew its lease" not in caplog.text
    from_maintenance = [record for record in caplog.records if record.name == "django_jobs.maintenance"]
    assert from_maintenance
    assert not any(record.exc_info for record in from_maintenance), "an outage is no bug"


def test_after_an_outage_schedules_go_on_and_catch_up_by_their_policy(job):
    @job("tick")
    def tick(): ...

    with PostgresServer(synchronous_commit="on") as server, other_server(server):
        create_schedule("tick", type=tick, every=timedelta(seconds=1), catch_up="all")
        with running_worker() as worker:
            wait_for(lambda: len(slots_if_reachable()) >= 2)
            connections["default"].close()
            server.halt("immediate")
            wait_for(lambda: worker.process._upkeep.in_outage, timeout=30)
            server.launch()
            before = len(slots_if_reachable())
            wait_for(lambda: len(slots_if_reachable()) >= before + 5, timeout=40)
            assert worker.alive
        slots = slots_if_reachable()
        connections["default"].close()
    assert slots == [slots[0] + timedelta(seconds=number) for number in range(len(slots))]


def slots_if_reachable():
    try:
        return list(ScheduleSlot.objects.filter(outcome="fired").order_by("slot").values_list("slot", flat=True))
    except OperationalError:
        connections["default"].close()
        return []


def lease_is_live(one):
    return Job.objects.filter(pk=one.id, locked_until__gt=Now()).exists()


def status_if_reachable(one):
    try:
        return get_job(one.id).status
    except OperationalError:
        connections["default"].close()
        return None
