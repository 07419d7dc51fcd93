"""Processes that vanish or stand still: their jobs run elsewhere, and what they write late does not count."""

import os
import random
import signal
import threading
import time
from collections import Counter

import pytest
from django.db import connections, transaction
from django.db.models import Sum
from django.db.models.functions import Now

from django_jobs import get_job
from django_jobs.models import DeadJob, Job, JobCount, JobHistory, Leadership, Worker
from tests.app.jobs import freeze, hold, hold_delicate, mark, mark_atomic, nap, poison
from tests.app.models import Mark
from tests.operations.support import on_sqlite
from tests.waiting import wait_for

CHAOS_SECONDS = float(os.environ.get("CHAOS_SECONDS", "4"))


def lost_errors(info):
    return [entry for entry in info.errors if entry["type"].endswith("WorkerLost")]


def test_the_jobs_of_killed_processes_run_elsewhere_and_the_loss_is_on_record(start_worker, gate, wait_for_marks):
    workers = [start_worker("--concurrency", "4") for _ in range(3)]
    jobs = [hold.enqueue(label=f"{n}", until=str(gate)) for n in range(12)]
    wait_for_marks(*(f"{n} started" for n in range(12)))
    killed = {worker.pid for worker in workers[:2]}
    for worker in workers[:2]:
        worker.send(signal.SIGKILL)
        worker.end()
    first_start = {}
    for label, pid in Mark.objects.order_by("pk").values_list("label", "pid"):
        first_start.setdefault(label, pid)
    gate.touch()
    wait_for(lambda: not Job.objects.exists(), timeout=30)
    for n, one in enumerate(jobs):
        info = get_job(one.id)
        was_killed = first_start[f"{n} started"] in killed
        assert (info.status, info.attempts) == ("succeeded", 2 if was_killed else 1)
        assert len(lost_errors(info)) == (1 if was_killed else 0)
    assert not DeadJob.objects.exists()


@pytest.mark.parametrize("queues", [("default", "bulk"), ("bulk", "default")], ids=["it led", "another one led"])
def test_the_jobs_of_a_killed_process_are_ready_again_within_a_lease_and_a_pass(
    start_worker, gate, wait_for_marks, queues
):
    """The time that a loaded machine is given on top is half a lease: less than a second lease would take."""
    lease, rescue_pass = 9.0, 0.2
    workers = {}
    for queue in queues:
        workers[queue] = start_worker("--queues", queue, LEASE=lease, RESCUE_EVERY=rescue_pass)
        wait_for(Leadership.objects.exists)
    enqueued = hold.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    leader = Worker.objects.get(pk__in=Leadership.objects.values("holder"))
    assert leader.pid == workers[queues[0]].pid
    workers["default"].send(signal.SIGKILL)
    began = time.monotonic()
    wait_for(lambda: not Job.objects.filter(pk=enqueued.id, status="processing").exists(), timeout=30)
    assert time.monotonic() - began < lease + rescue_pass + lease / 2
    assert Job.objects.get(pk=enqueued.id).lost_runs == 1


def test_a_delicate_job_of_a_killed_process_is_buried_not_repeated(start_worker, gate, wait_for_marks):
    doomed = start_worker()
    enqueued = hold_delicate.enqueue(label="delicate", until=str(gate))
    wait_for_marks("delicate started")
    doomed.send(signal.SIGKILL)
    start_worker()
    wait_for(lambda: get_job(enqueued.id).status == "dead", timeout=20)
    assert get_job(enqueued.id).reason == "worker_lost"
    assert Mark.objects.count() == 1


def test_a_job_that_kills_its_process_ends_as_dead_and_its_neighbours_survive(start_worker, wait_for_marks):
    poisoned = poison.enqueue(label="poison")
    innocents = [nap.enqueue(label=f"{n}", seconds=0.5) for n in range(3)]
    for _ in range(2):
        start_worker("--concurrency", "5", wait=False, LEASE=1).wait(30)
    start_worker("--concurrency", "5", LEASE=1)
    wait_for(lambda: get_job(poisoned.id).status == "dead", timeout=20)
    info = get_job(poisoned.id)
    assert (info.reason, info.attempts, Mark.objects.filter(label="poison").count()) == ("worker_lost", 2, 2)
    wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in innocents), timeout=20)


def test_a_process_that_stood_still_past_its_lease_changes_nothing_afterwards(start_worker, gate, wait_for_marks):
    frozen = start_worker("--concurrency", "1")
    enqueued = hold.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    frozen.send(signal.SIGSTOP)
    other = start_worker("--concurrency", "1")
    wait_for(lambda: Mark.objects.filter(label="a started").count() == 2, timeout=20)
    gate.touch()
    wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    frozen.send(signal.SIGCONT)
    wait_for(lambda: Mark.objects.filter(label="a ended").count() == 2)
    frozen.wait_for_output("the lease is lost")
    for worker in (frozen, other):
        worker.stop()
        assert worker.wait() == 0, worker.output
    info = get_job(enqueued.id)
    assert (info.status, info.result, JobHistory.objects.count()) == ("succeeded", 2, 1)
    counted = JobCount.objects.filter(type="hold").values_list("outcome").annotate(Sum("count"))
    assert set(counted) == {("lost", 1), ("succeeded", 1), ("stale", 1)}


def test_a_process_whose_native_code_keeps_the_gil_past_its_lease_is_as_one_that_stood_still(start_worker, tmp_path):
    """The limit of the renewer: its thread cannot run. The late outcome changes nothing."""
    thaw = tmp_path / "thaw"
    os.mkfifo(thaw)
    freezing = start_worker("--concurrency", "1", LEASE=1)
    enqueued = freeze.enqueue(until=str(thaw))
    wait_for(lambda: get_job(enqueued.id).status == "processing")
    start_worker("--concurrency", "1", LEASE=1)
    wait_for(lambda: get_job(enqueued.id).status == "succeeded", timeout=30)
    thaw.write_text("")
    freezing.wait_for_output("changed nothing")
    info = get_job(enqueued.id)
    assert (info.status, info.result, info.attempts, len(lost_errors(info))) == ("succeeded", 2, 2, 1)
    assert set(Mark.objects.values_list("label", flat=True)) == {"attempt 1", "attempt 2"}


@on_sqlite
def test_a_database_locked_for_three_leases_starts_nothing_a_second_time(start_worker, gate, wait_for_marks):
    workers = [start_worker("--concurrency", "4") for _ in range(3)]
    jobs = [hold.enqueue(label=f"{n}", until=str(gate)) for n in range(6)]
    wait_for_marks(*(f"{n} started" for n in range(6)))
    for _ in range(3):
        with transaction.atomic():
            Mark.objects.create(label="locked")
            time.sleep(6.5)  # the lock is the trouble: three leases long
        wait_for(lambda: Job.objects.filter(locked_until__gt=Now()).count() == 6, message="all leases to be renewed")
    gate.touch()
    wait_for(lambda: not Job.objects.exists(), timeout=30)
    assert [get_job(one.id).attempts for one in jobs] == [1] * 6
    assert Mark.objects.filter(label__endswith="started").count() == 6
    assert all(worker.popen.poll() is None for worker in workers)


def test_jobs_that_kill_their_process_bury_only_themselves(fleet):
    poisons, innocents = [], []
    for n in range(400):
        if n % 20 == 7:
            poisons.append(poison.using(max_attempts=3).enqueue(label="poison"))
        else:
            innocents.append(nap.using(max_attempts=3).enqueue(label=str(n), seconds=0.02))
    fleet(4, "--concurrency", "10", "--no-scheduler")
    wait_for(lambda: not Job.objects.exists(), timeout=120, message="all jobs to end")
    assert set(DeadJob.objects.values_list("id", flat=True)) == {one.id for one in poisons}
    assert set(DeadJob.objects.values_list("reason", "attempts")) == {("worker_lost", 3)}
    assert {get_job(one.id).status for one in innocents} == {"succeeded"}
    assert 20 <= Mark.objects.filter(label="poison").count() <= 20 * 3, "some die beside another before they start"


class Troublemaker(threading.Thread):
    """Kills, stops, freezes and replaces workers."""

    def __init__(self, start_worker):
        super().__init__(name="troublemaker")
        self.start_worker = start_worker
        self.workers = []
        self.end = time.monotonic() + CHAOS_SECONDS
        self.error = None

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.make_trouble()
                time.sleep(0.5)  # the rhythm of the trouble; nothing is asserted after it
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def make_trouble(self):
        number = random.randrange(len(self.workers))
        worker = self.workers[number]
        match random.choice(["term", "term twice", "kill", "freeze"]):
            case "term":
                worker.send(signal.SIGTERM)
            case "term twice":
                worker.stop_at_once()
            case "kill":
                worker.send(signal.SIGKILL)
            case "freeze":
                worker.send(signal.SIGSTOP)
                time.sleep(1.3)  # longer than the lease: standing still for so long is the trouble
                worker.send(signal.SIGCONT)
                return
        worker.wait(40)
        self.workers[number] = self.start_worker("--concurrency", "4", LEASE=1, POLL_EVERY=1)


def test_chaos_loses_nothing_and_repeats_only_what_lost_its_lease(start_worker):
    trouble = Troublemaker(start_worker)
    trouble.workers = [start_worker("--concurrency", "4", LEASE=1, POLL_EVERY=1) for _ in range(3)]
    trouble.start()
    jobs = []
    while trouble.is_alive():
        for handle in (mark, mark_atomic):
            batch = [{"label": str(len(jobs) + n)} for n in range(10)]
            enqueued = handle.using(max_attempts=1000).enqueue_many(batch)
            jobs += [(handle, one.id) for one in enqueued]
        trouble.join(0.05)
    assert trouble.error is None
    wait_for(lambda: not Job.objects.exists(), timeout=60, message="all jobs to end")
    assert not DeadJob.objects.exists()
    runs = Counter(int(label) for label in Mark.objects.values_list("label", flat=True))
    for n, (handle, job_id) in enumerate(jobs):
        info = get_job(job_id)
        assert info.status == "succeeded"
        assert runs[n] == 1 or (1 < runs[n] <= 1 + len(lost_errors(info)) and handle is mark)
