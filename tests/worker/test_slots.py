"""Which claimed job starts where and when: slots, queues, priorities, pauses."""

import threading
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from django.utils import timezone

from django_jobs import RunningJob, clock, enqueue, get_job, pause, resume
from django_jobs.engines.postgresql.session import PostgresqlSession
from django_jobs.engines.values import ClaimedJob
from django_jobs.models import Job, JobHistory
from django_jobs.worker.prefetch import Prefetch
from tests.factories import JobFactory
from tests.operations.support import on_postgresql
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


def finished(**filters):
    return JobHistory.objects.filter(status="succeeded", **filters).count()


def test_slots_are_refilled_one_by_one_beside_a_long_run(job):
    release = threading.Event()

    @job("long")
    def long():
        assert release.wait(60)

    @job("short")
    def short():
        pass

    long.enqueue()
    short.enqueue_many({} for _ in range(60))
    with running_worker(concurrency=4):
        wait_for(lambda: finished(type="short") == 60)
        assert finished(type="long") == 0
        release.set()
        wait_for(lambda: finished(type="long") == 1)


class Gauge:
    """How many runs of a queue go on at once, at most."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now, self.most = {}, {}

    def __call__(self, queue):
        self.queue = queue
        return self

    def enter(self, queue):
        with self.lock:
            self.now[queue] = self.now.get(queue, 0) + 1
            self.most[queue] = max(self.most.get(queue, 0), self.now[queue])

    def leave(self, queue):
        with self.lock:
            self.now[queue] -= 1


def test_a_queues_own_slots_and_the_shared_ones_are_respected_and_used(job):
    gauge, full = Gauge(), threading.Event()
    expected = {"urgent": 2, "default": 3, "bulk": 1}

    @job("measured")
    def measured(queue: str):
        gauge.enter(queue)
        if gauge.now == expected:
            full.set()
        assert full.wait(20), gauge.now
        gauge.leave(queue)

    for queue in expected:
        measured.using(queue=queue).enqueue_many({"queue": queue} for _ in range(12))
    drain(queues="urgent:2,default:3,bulk", concurrency=1)
    assert finished() == 36
    assert gauge.most == expected


def test_of_two_suspects_for_two_groups_of_slots_one_runs_and_the_other_goes_back_unharmed(job):
    together, release = [], threading.Event()

    @job("suspect")
    def suspect(run: RunningJob):
        together.append(run.queue)
        assert release.wait(60)
        together.remove(run.queue)
        return run.attempt

    rows = [JobFactory(type="suspect", queue=queue, attempts=1, lost_runs=1) for queue in ("urgent", "default")]
    with running_worker(queues="urgent:2,default:2") as worker:
        wait_for(lambda: together)
        (waiting,) = [row.pk for row in rows if row.queue not in together]
        given_back = Job.objects.filter(pk=waiting, status="scheduled", attempts=1, lease_token=None)
        wait_for(given_back.exists, message="the other group's suspect to be claimed and given back")
        assert (len(together), worker.process.held.suspects()) == (1, 1)
        release.set()
        wait_for(lambda: finished() == 2)
    assert [get_job(row.pk).result for row in rows] == [2, 2]


def test_queues_that_share_slots_take_turns(job):
    order = []

    @job("noted")
    def noted(queue: str):
        order.append(queue)

    for queue in ("default", "urgent", "bulk"):
        noted.using(queue=queue).enqueue_many({"queue": queue} for _ in range(200))
    drain(concurrency=1)
    assert all(queue in order[:300] for queue in ("default", "urgent", "bulk"))


def test_the_higher_priority_runs_first_and_equals_in_the_order_they_came(job):
    order = []

    @job("ordered")
    def ordered(n: int):
        order.append(n)

    for n, priority in enumerate([0, 5, -3, 5, 0, 9]):
        ordered.using(priority=priority).enqueue(n=n)
    drain(concurrency=1)
    assert order == [5, 1, 3, 0, 4, 2]


def test_a_paused_queue_is_left_alone_until_it_is_resumed(job, configure):
    configure(POLL_EVERY_UNPROVEN=0.2)

    @job("noop")
    def noop():
        pass

    pause("default")
    held_up = noop.enqueue()
    other = noop.using(queue="urgent").enqueue()
    with running_worker():
        wait_for(lambda: get_job(other.id).status == "succeeded")
        assert get_job(held_up.id).status == "pending"
        resume("default")
        wait_for(lambda: get_job(held_up.id).status == "succeeded")


def test_a_pause_that_is_over_holds_nothing_up(job):
    @job("noop")
    def noop():
        pass

    pause("default", until=timezone.now() - timedelta(seconds=1))
    enqueued = noop.enqueue()
    drain()
    assert get_job(enqueued.id).status == "succeeded"


def test_a_drain_does_not_wait_for_a_paused_queue(job):
    @job("noop")
    def noop():
        pass

    pause("bulk")
    held_up = noop.using(queue="bulk").enqueue()
    drain()
    assert get_job(held_up.id).status == "pending"


def test_a_drain_waits_for_what_is_due_within_its_horizon_and_leaves_the_rest(job):
    @job("noop")
    def noop():
        pass

    soon = noop.using(delay=timedelta(seconds=1)).enqueue()
    later = noop.using(delay=timedelta(minutes=5)).enqueue()
    drain(horizon=30)
    assert (get_job(soon.id).status, get_job(later.id).status) == ("succeeded", "scheduled")


def test_a_delayed_job_never_starts_early(job):
    started = {}

    @job("punctual")
    def punctual(n: int):
        started[n] = timezone.now()

    due = {}
    for n in range(10):
        due[n] = timezone.now() + timedelta(milliseconds=100 * n)
        punctual.using(run_at=due[n]).enqueue(n=n)
    drain(concurrency=10)
    assert all(started[n] >= due[n] for n in due)


def test_jobs_of_the_future_are_neither_claimed_nor_hoarded(job, configure):
    configure(LEASE=1)
    ran = []

    @job("future")
    def future(n: int):
        ran.append(n)

    future.using(delay=timedelta(hours=2)).enqueue_many({"n": n} for n in range(100))
    release = threading.Event()

    @job("waits")
    def waits():
        release.wait(1.5)

    waits.enqueue()
    with running_worker() as worker:
        wait_for(lambda: finished(type="waits") == 1)
        assert not ran
        assert set(Job.objects.values_list("status", "attempts", "lease_token")) == {("scheduled", 0, None)}
        Job.objects.update(run_at=timezone.now())
        wait_for(lambda: finished(type="future") == 100)
        assert worker.alive
    assert sorted(ran) == list(range(100))


def test_unstarted_jobs_of_a_process_that_got_stuck_are_given_to_others(job):
    release = threading.Event()
    first = threading.Event()

    @job("quick")
    def quick():
        if first.is_set():
            release.wait(60)

    quick.enqueue_many({} for _ in range(3000))
    with running_worker(concurrency=2) as busy:
        wait_for(lambda: finished() > 300)
        first.set()
        wait_for(lambda: busy.process._groups[0].running == 2)
        wait_for(lambda: len(busy.process.held) == 2, message="the unstarted jobs to be given back")
        first.clear()
        with running_worker(concurrency=2):
            wait_for(lambda: finished() == 2998, timeout=30)
        release.set()
        wait_for(lambda: finished() == 3000)
    assert not JobHistory.objects.exclude(attempts=1).exists()


@on_postgresql
def test_what_a_claim_took_too_many_of_waits_for_a_slot_and_goes_back(job, monkeypatch, caplog):
    real = PostgresqlSession._send_claim
    monkeypatch.setattr(
        PostgresqlSession,
        "_send_claim",
        lambda self, connection, claim: real(self, connection, replace(claim, limit=claim.limit + 5)),
    )
    started, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob):
        started.append(run.id)
        assert release.wait(60)

    long.enqueue_many([{}] * 6)
    with running_worker(concurrency=1):
        wait_for(lambda: started)
        assert "A claim for 1 jobs took 6." in caplog.text
        surplus = Job.objects.exclude(pk__in=started)
        wait_for(lambda: list(surplus.values_list("attempts", "lease_token")) == [(0, None)] * 5)
        assert len(started) == 1
        release.set()
        wait_for(lambda: finished(attempts=1) == 6)
    assert len(set(started)) == len(started) == 6


def test_one_run_that_ends_at_an_awkward_moment_does_not_make_a_process_hoard():
    prefetch = Prefetch()
    prefetch.allowance(0)
    assert prefetch.allowance(1) <= 1


def test_of_large_payloads_few_are_held_unstarted_however_fast_they_run(monkeypatch):
    now = 100.0
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    prefetch = Prefetch()
    large = ClaimedJob(uuid4(), 1, "noop", "x" * 256 * 1024, "default", 0, "", 1, 5, 0, "{}", False)
    for _ in range(20):
        now += 1.0
        prefetch.saw([large] * 5)
        allowed = prefetch.allowance(20_000)
    assert 0 < allowed * len(large.payload) <= 8.1 * 1024 * 1024


def test_enqueueing_by_name_runs_the_same_handler_as_an_alias(job):
    @job("new_name", aliases=["old_name"])
    def renamed():
        return "renamed"

    ids = [enqueue("new_name").id, enqueue("old_name").id]
    drain()
    assert [get_job(job_id).result for job_id in ids] == ["renamed", "renamed"]
