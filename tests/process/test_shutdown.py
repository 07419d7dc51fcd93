"""Signals: graceful first, at once the second time, without another word the third."""

import os
import shutil
import signal
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_jobs import get_job
from django_jobs.models import Job, Worker
from tests.app.jobs import hold, hold_async, mark, overrun, spin, wait_in_thread
from tests.app.models import Mark
from tests.processes import children_of
from tests.waiting import wait_for

DEFAULT_TIMEOUT = 30


def statuses(jobs):
    return [get_job(one.id).status for one in jobs]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_the_first_signal_waits_for_running_jobs_and_takes_no_more(start_worker, gate, wait_for_marks, number):
    worker = start_worker("--concurrency", "2")
    running = [hold.enqueue(label=f"{n}", until=str(gate)) for n in range(2)]
    wait_for_marks("0 started", "1 started")
    waiting = [mark.enqueue(label="later") for _ in range(20)]
    worker.stop(number)
    gate.touch()
    assert worker.wait() == 0, worker.output
    assert statuses(running) == ["succeeded", "succeeded"]
    assert set(Job.objects.values_list("attempts", "lease_token")) == {(0, None)}
    assert Job.objects.count() == len(waiting)
    assert Worker.objects.get(pid=worker.pid).stopped_at is not None


def test_after_the_shutdown_timeout_running_jobs_are_handed_back_unharmed(start_worker, gate, wait_for_marks):
    worker = start_worker("--shutdown-timeout", "1", "--concurrency", "4")
    jobs = [
        *(hold.enqueue(label=f"thread {n}", until=str(gate)) for n in range(2)),
        *(hold_async.enqueue(label=f"task {n}", until=str(gate)) for n in range(2)),
    ]
    wait_for_marks("thread 0 started", "thread 1 started", "task 0 started", "task 1 started")
    asked_at = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.output
    assert 1 <= time.monotonic() - asked_at < DEFAULT_TIMEOUT / 2
    rows = Job.objects.all()
    assert [(row.status, row.attempts, row.lease_token, row.locked_by) for row in rows] == [
        ("scheduled", 0, None, "")
    ] * 4
    assert all(row.run_at > timezone.now() - timedelta(seconds=10) for row in rows)
    wait_for_marks("task 0 cancelled", "task 1 cancelled")
    gate.touch()
    start_worker("--drain", "--drain-horizon", "5", wait=False).wait()
    assert statuses(jobs) == ["succeeded"] * 4
    assert get_job(jobs[0].id).result == 1


def test_a_thread_that_a_cancelled_handler_left_behind_does_not_keep_the_process(start_worker, wait_for_marks):
    worker = start_worker("--shutdown-timeout", "0")
    wait_in_thread.enqueue(label="a", seconds=600)
    wait_for_marks("a started")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.output
    assert Job.objects.get().attempts == 0


def test_a_shutdown_timeout_of_zero_hands_back_at_once(start_worker, gate, wait_for_marks):
    worker = start_worker("--shutdown-timeout", "0")
    hold.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    asked_at = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.output
    assert time.monotonic() - asked_at < DEFAULT_TIMEOUT / 2
    assert Job.objects.get().attempts == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_second_signal_ends_at_once_although_handlers_spin(start_worker, wait_for_marks, number):
    worker = start_worker("--concurrency", "4")
    for n in range(4):
        spin.enqueue(label=f"{n}")
    wait_for_marks(*(f"{n} started" for n in range(4)))
    worker.stop_at_once(number)
    asked_at = time.monotonic()
    assert worker.wait() == 0, worker.output
    assert time.monotonic() - asked_at < 6
    assert set(Job.objects.values_list("status", "attempts", "lease_token")) == {("scheduled", 0, None)}


def test_a_third_signal_ends_the_process_without_another_word(start_worker, wait_for_marks, gate):
    worker = start_worker("--concurrency", "1")
    enqueued = hold.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    with transaction.atomic():
        Job.objects.select_for_update().filter(pk=enqueued.id).update(priority=1)
        worker.stop_at_once()
        worker.wait_for_output("handed back")
        assert worker.popen.poll() is None, "the hand-back needs the row that is locked here"
        worker.send(signal.SIGTERM)
        assert worker.wait() == 128 + signal.SIGTERM
    assert Job.objects.get().status == "processing"


def test_a_row_that_stays_locked_does_not_keep_the_process_for_ever(start_worker, wait_for_marks, gate):
    worker = start_worker("--concurrency", "1")
    enqueued = hold.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    with transaction.atomic():
        Job.objects.select_for_update().filter(pk=enqueued.id).update(priority=1)
        worker.stop_at_once()
        assert worker.wait(60) == 0, worker.output


def test_a_signal_while_the_claim_commits_loses_nothing(start_worker):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite cannot be made slow at its commit")
    worker = start_worker()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_sleep(1.5) /* the commit is slow: that is the trouble */; RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER be_slow AFTER UPDATE ON django_jobs_job DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW WHEN (NEW.status = 'processing') EXECUTE FUNCTION be_slow();
            """
        )
    try:
        enqueued = mark.enqueue(label="claimed")
        wait_for(lambda: sleeping_backends() == 1)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
        row = Job.objects.get(pk=enqueued.id)
        assert (row.attempts, row.lease_token) == (0, None)
        assert not Mark.objects.exists()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER be_slow ON django_jobs_job; DROP FUNCTION be_slow()")


def sleeping_backends():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        return cursor.fetchone()[0]


def test_a_process_with_a_stuck_thread_ends_with_exit_code_70(start_worker, wait_for_marks, gate):
    worker = start_worker("--shutdown-timeout", "1", TIMEOUT_GRACE=0.3)
    enqueued = overrun.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    assert worker.wait() == 70, worker.output
    assert "overran their time-out and did not end" in worker.output
    info = get_job(enqueued.id)
    assert (info.status, info.attempts) == ("failed_retrying", 1)


def test_a_worker_works_as_process_number_one(start_worker, wait_for_marks):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a process namespace needs root")
    wrapper = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    outer = start_worker(wrapper=wrapper, wait=False)
    mark.enqueue(label="by number one")
    wait_for_marks("by number one")
    assert Mark.objects.get().pid == 1
    (inner,) = children_of(outer.pid)
    os.kill(inner, signal.SIGTERM)
    assert outer.wait() == 0, outer.output
