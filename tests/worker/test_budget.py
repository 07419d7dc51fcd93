"""The sum in docs/guides/connections.md is what a busy worker needs."""

import threading
from contextlib import contextmanager

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction

from django_jobs.checks import LEADER_CONNECTIONS, SERVICE_CONNECTIONS
from django_jobs.models import DeadJob, Job, JobHistory
from django_jobs.worker.threads import Threads
from tests.app.models import Mark
from tests.operations.support import on_postgresql
from tests.waiting import wait_for
from tests.worker.elsewhere import pointed_to
from tests.worker.embedded import drain, running_worker

pytestmark = on_postgresql

SLOTS, JOBS = 20, 600


@contextmanager
def role_limited_to(connections):
    """What connects inside the block may open so many; no superuser, whom no limit binds, but may do what ours may."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_user)")
        (ours,) = cursor.fetchone()
        password = connection.settings_dict["PASSWORD"] or "none"
        role = psycopg.sql.SQL("CREATE ROLE limited LOGIN PASSWORD {} CONNECTION LIMIT {}")
        cursor.execute(role.format(password, connections))
        cursor.execute(f"GRANT {ours} TO limited")
    try:
        with pointed_to(USER="limited", PASSWORD=password):
            yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP ROLE limited")


@pytest.mark.parametrize(
    ("kept", "kinds"),
    [(0, ["plain", "asynchronous"]), (None, ["plain"]), (None, ["asynchronous"])],
    ids=["CONN_MAX_AGE=0", "CONN_MAX_AGE=None, def", "CONN_MAX_AGE=None, async def"],
)
def test_a_worker_at_full_slots_opens_no_more_connections_than_the_formula_says(job, caplog, kept, kinds):
    @job("plain", max_attempts=1)
    def plain(n: int):
        Mark.objects.count()
        if not n % 3:
            raise ValueError(n)

    @job("asynchronous", max_attempts=1)
    async def asynchronous(n: int):
        await Mark.objects.acount()
        if not n % 3:
            raise ValueError(n)

    with transaction.atomic():
        for handle in (plain, asynchronous):
            if handle.job_type.name in kinds:
                handle.enqueue_many({"n": n} for n in range(JOBS))
    limit = SLOTS + SERVICE_CONNECTIONS + LEADER_CONNECTIONS
    with role_limited_to(limit), pointed_to(CONN_MAX_AGE=kept), running_worker(concurrency=SLOTS):
        wait_for(lambda: not Job.objects.exists(), timeout=60)
    assert "too many connections" not in caplog.text
    assert JobHistory.objects.count() == 2 * JOBS / 3 * len(kinds)
    assert set(DeadJob.objects.values_list("error_type", flat=True)) == {"ValueError"}


@pytest.mark.parametrize("fails", [False, True], ids=["returns", "raises"])
def test_the_slot_of_an_async_run_is_free_when_its_connection_is_closed(job, fails):
    order, waiting = [], threading.Event()

    @job("slow_to_close", max_attempts=1)
    async def slow_to_close():
        await Mark.objects.acount()
        await sync_to_async(delay_close)()
        if fails:
            raise ValueError

    def delay_close():
        wrapper = connections["default"]
        close = wrapper.close

        def close_late():
            if wrapper.connection is not None:
                waiting.wait(0.5)  # for what must not come
                order.append("closed")
            close()

        wrapper.close = close_late

    @job("next")
    async def next_one():
        order.append("next")
        waiting.set()

    with pointed_to(CONN_MAX_AGE=None):
        slow_to_close.using(priority=9).enqueue()
        next_one.enqueue()
        drain(concurrency=1)
    assert order == ["closed", "next"]


def test_a_run_that_starts_in_a_slot_that_has_just_become_free_needs_no_further_thread():
    ran, all_ran = [], threading.Event()

    class Runner:
        def run(self, run, *, rested):
            ran.append(run)

    def started_by_another(slots, run, ended):
        if run:
            threads.start(slots, run - 1)
        else:
            all_ran.set()

    threads = Threads(Runner(), started_by_another, None)
    threads.start(None, 9)
    assert all_ran.wait(20)
    threads.close(5)
    assert len(ran) == 10
    assert len(threads._threads) == 1


def test_a_thread_that_is_wanted_for_two_runs_takes_one_of_them():
    """Somebody gives it one when its slot is free, and it has found another itself."""
    ran, elsewhere = [], []

    class Runner:
        def run(self, run, *, rested):
            ran.append(run)

    def both(slots, run, ended):
        if run == "first":
            threads.start(slots, "given")
            return "found"
        given.set()
        return None

    given = threading.Event()
    threads = Threads(Runner(), both, lambda slots, run: elsewhere.append(run))
    threads.start(None, "first")
    assert given.wait(20)
    threads.close(5)
    assert (ran, elsewhere) == (["first", "given"], ["found"])
