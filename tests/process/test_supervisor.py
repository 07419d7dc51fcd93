"""``runjobworker --processes N``: deaths are noticed, cleared up after and made good; signals are heard once."""

import os
import platform
import random
import re
import shutil
import signal
import socket
import time
from pathlib import Path

import django
import pytest
from django.db import transaction

import django_jobs
from django_jobs import get_job
from django_jobs.models import Alert, DeadJob, Job, Worker
from tests.app.jobs import die_now, hold, instant, leave_orphan, mark, nap, poison, quit_process
from tests.app.models import Mark
from tests.processes import children_of, is_running
from tests.waiting import wait_for

# Nobody is rescued by a lapsed lease in these tests.
LONG_LEASE = {"LEASE": 60}


def pid_of(label):
    return Mark.objects.get(label=label).pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV], ids=["SIGKILL", "SIGSEGV"])
def test_the_jobs_of_a_dead_child_are_free_at_once_with_the_cause_on_record(
    start_supervisor, gate, wait_for_marks, number
):
    supervisor = start_supervisor(2, "--concurrency", "2", **LONG_LEASE)
    jobs = [hold.enqueue(label=f"{n}", until=str(gate)) for n in range(4)]
    wait_for_marks(*(f"{n} started" for n in range(4)))
    doomed = pid_of("0 started")
    theirs = [n for n in range(4) if pid_of(f"{n} started") == doomed]
    os.kill(doomed, number)
    wait_for(lambda: Mark.objects.count() > 4, timeout=30, message="a second start, of one suspect at a time")
    gate.touch()
    wait_for(lambda: not Job.objects.exists(), timeout=30)
    for n, one in enumerate(jobs):
        info = get_job(one.id)
        assert (info.status, info.attempts) == ("succeeded", 2 if n in theirs else 1)
        messages = [entry["message"] for entry in info.errors]
        assert len(messages) == (n in theirs)
        assert all(f"worker died: {number.name}" in message for message in messages)
    assert Worker.objects.get(pid=doomed).stopped_at is not None
    supervisor.wait_for_workers(2)


def test_runs_that_die_with_their_process_again_and_again_raise_the_alert_of_lost_leases(start_supervisor):
    start_supervisor(1, ALERT_LOST_LEASES=3, WATCH_EVERY=0.5, **LONG_LEASE)
    poison.using(max_attempts=3).enqueue(label="poison")
    wait_for(DeadJob.objects.exists, timeout=60)
    wait_for(lambda: Alert.objects.filter(condition="lost_leases", state="open").exists(), timeout=30)
    assert Alert.objects.get(condition="lost_leases").details == {"by_type": {"poison": 3}}


@pytest.mark.parametrize("code", [3, 0])
def test_a_child_that_exits_by_itself_is_replaced_and_its_exit_code_is_on_record(start_supervisor, code):
    supervisor = start_supervisor(1, **LONG_LEASE)
    (first,) = supervisor.workers()
    enqueued = quit_process.enqueue(label="a", code=code)
    wait_for(lambda: get_job(enqueued.id).status == "dead", timeout=30, message=supervisor.output)
    assert f"worker died: exit code {code}" in get_job(enqueued.id).errors[0]["message"]
    assert supervisor.wait_for_workers(1, besides=[first])


def test_poison_ends_under_a_supervisor_and_its_neighbours_survive(start_supervisor):
    start_supervisor(1, "--concurrency", "5", **LONG_LEASE)
    poisoned = poison.enqueue(label="poison")
    innocents = [nap.enqueue(label=f"{n}", seconds=0.5) for n in range(3)]
    wait_for(lambda: get_job(poisoned.id).status == "dead", timeout=60)
    assert (get_job(poisoned.id).reason, get_job(poisoned.id).attempts) == ("worker_lost", 2)
    wait_for(lambda: all(get_job(one.id).status == "succeeded" for one in innocents), timeout=30)


def test_jobs_that_a_dead_child_had_not_started_have_their_attempt_refunded(start_supervisor):
    """Tiny jobs wait in the process behind one that kills it; the ledger knows which of them had begun."""
    supervisor = start_supervisor(1, "--concurrency", "1", **LONG_LEASE)
    with transaction.atomic():
        instant.enqueue_many([{}] * 3000)
        die_now.enqueue()
        behind = [one.id for one in instant.enqueue_many([{}] * 300)]
    wait_for(lambda: not Job.objects.exists(), timeout=90, message=supervisor.output)
    freed, not_started = map(int, re.search(r"(\d+) jobs are free again, (\d+) of them", supervisor.output).groups())
    assert 0 < not_started < freed, "the killer itself had started"
    lost = [get_job(job_id) for job_id in behind if get_job(job_id).errors]
    assert len(lost) == 0, "nothing behind the killer had started"
    assert {get_job(job_id).attempts for job_id in behind} == {1}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_the_first_signal_is_forwarded_and_waits_for_running_jobs(start_supervisor, gate, wait_for_marks, number):
    supervisor = start_supervisor(2, "--concurrency", "1")
    jobs = [hold.enqueue(label=f"{n}", until=str(gate)) for n in range(2)]
    wait_for_marks("0 started", "1 started")
    supervisor.send(number)
    wait_for(lambda: supervisor.output.count("Stopping: no more claims") == 2, timeout=20)
    gate.touch()
    assert supervisor.wait() == 0, supervisor.output
    assert [get_job(one.id).status for one in jobs] == ["succeeded"] * 2
    assert not Worker.objects.filter(stopped_at=None).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_to_the_children_as_well_counts_once(start_supervisor, gate, wait_for_marks, number):
    """As Ctrl-C in a terminal, ``kill`` on a group, and systemd's control groups send it."""
    supervisor = start_supervisor(2, "--concurrency", "1")
    children = supervisor.workers()
    jobs = [hold.enqueue(label=f"{n}", until=str(gate)) for n in range(2)]
    wait_for_marks("0 started", "1 started")
    for pid in (*children, supervisor.pid, *children):
        os.kill(pid, number)
    wait_for(lambda: supervisor.output.count("Stopping: no more claims") == 2, timeout=20)
    enough = time.monotonic() + 2  # a second order would have been obeyed by then: nothing else tells that none came
    wait_for(lambda: time.monotonic() > enough)
    assert "handed back" not in supervisor.output
    gate.touch()
    assert supervisor.wait() == 0, supervisor.output
    assert [get_job(one.id).status for one in jobs] == ["succeeded"] * 2


def test_a_second_signal_hands_running_jobs_back_at_once(start_supervisor, gate, wait_for_marks):
    supervisor = start_supervisor(2, "--concurrency", "1", **LONG_LEASE)
    for n in range(2):
        hold.enqueue(label=f"{n}", until=str(gate))
    wait_for_marks("0 started", "1 started")
    supervisor.send(signal.SIGTERM)
    wait_for(lambda: supervisor.output.count("Stopping: no more claims") == 2, timeout=20)
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 0, supervisor.output
    assert set(Job.objects.values_list("status", "attempts", "lease_token")) == {("scheduled", 0, None)}


def test_a_third_signal_kills_all_of_them(start_supervisor):
    supervisor = start_supervisor(2, "--concurrency", "1", **LONG_LEASE)
    children = supervisor.workers()
    for pid in children:
        os.kill(pid, signal.SIGSTOP)
    for heard in ("Stopping 2 processes.", "Stopping 2 processes at once."):
        supervisor.send(signal.SIGTERM)
        supervisor.wait_for_output(heard)
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 128 + signal.SIGTERM
    wait_for(lambda: not any(map(is_running, children)))


def test_the_children_of_a_killed_supervisor_stop_gracefully(start_supervisor, gate, wait_for_marks):
    supervisor = start_supervisor(2, "--concurrency", "1")
    children = supervisor.workers()
    jobs = [hold.enqueue(label=f"{n}", until=str(gate)) for n in range(2)]
    wait_for_marks("0 started", "1 started")
    supervisor.send(signal.SIGKILL)
    wait_for(lambda: supervisor.output.count("Stopping: no more claims") == 2, timeout=20)
    gate.touch()
    wait_for(lambda: not any(map(is_running, children)), timeout=20)
    assert [get_job(one.id).status for one in jobs] == ["succeeded"] * 2


def test_children_that_do_not_live_are_replaced_with_growing_pauses(start_supervisor, monkeypatch):
    monkeypatch.setenv("TEST_DIE_AT_START", "1")
    supervisor = start_supervisor(1, wait=False)
    for pause in ("0.5 s", "1 s", "2 s"):
        supervisor.wait_for_output(f"Another one is started in {pause}")
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 0, supervisor.output


def test_children_that_are_recycled_are_replaced_and_every_job_runs_once(start_supervisor):
    """Fifty jobs for processes that leave after ten or so."""
    supervisor = start_supervisor(2, "--max-jobs", "10", "--concurrency", "2")
    jobs = mark.enqueue_many([{"label": f"{n}"} for n in range(50)])
    wait_for(lambda: not Job.objects.exists(), timeout=90, message=supervisor.output)
    assert {get_job(one.id).attempts for one in jobs} == {1}
    assert Mark.objects.count() == 50
    assert Mark.objects.values("pid").distinct().count() > 2
    assert "worker died" not in str([get_job(one.id).errors for one in jobs])
    assert "worker died" not in supervisor.output, "that was planned"
    assert re.search(
        r"INFO .*: \d+ jobs have run here \(--max-jobs 10\)\. Another|INFO Replacing process", supervisor.output
    )


def test_a_memory_limit_below_what_a_process_needs_is_said_once_and_does_not_replace_it_after_every_few_jobs(
    start_supervisor,
):
    supervisor = start_supervisor(1, "--max-memory", "1", "--concurrency", "2")
    for _ in range(2):
        mark.enqueue_many([{"label": f"{n}"} for n in range(50)])
        nap.enqueue(label="beyond the next look", seconds=1.5)
        wait_for(lambda: not Job.objects.exists(), timeout=60, message=supervisor.output)
    assert Mark.objects.values("pid").distinct().count() == 1
    assert supervisor.output.count("--max-memory 1 is less than") == 1
    assert "Ending once" not in supervisor.output


def test_a_replacement_starts_although_the_one_that_leaves_is_still_busy(start_supervisor, gate, wait_for_marks):
    supervisor = start_supervisor(1, "--max-jobs", "1", "--concurrency", "2")
    (first,) = supervisor.workers()
    held = hold.enqueue(label="long", until=str(gate))
    wait_for_marks("long started")
    mark.enqueue(label="enough")
    supervisor.wait_for_workers(1, besides=[first])
    assert is_running(first)
    gate.touch()
    wait_for(lambda: not is_running(first), timeout=20)
    assert (get_job(held.id).status, get_job(held.id).attempts) == ("succeeded", 1)


def test_a_child_that_is_not_heard_of_for_long_is_killed_and_replaced(start_supervisor):
    """Frozen, or in native code that lets nothing else run: its leases have lapsed, its slots are lost."""
    supervisor = start_supervisor(1)
    (frozen,) = supervisor.workers()
    os.kill(frozen, signal.SIGSTOP)
    supervisor.wait_for_workers(1, besides=[frozen])
    assert "not heard of for 10 s" in supervisor.output
    assert not is_running(frozen)


def test_a_drain_ends_when_all_processes_have_drained(start_supervisor):
    mark.enqueue_many([{"label": f"{n}"} for n in range(50)])
    supervisor = start_supervisor(2, "--drain", wait=False)
    assert supervisor.wait(60) == 0, supervisor.output
    assert Mark.objects.count() == 50


def test_a_drain_goes_on_although_a_handler_ends_its_process_with_0(start_supervisor):
    quit_process.using(priority=5).enqueue(label="quits", code=0)
    mark.enqueue_many([{"label": f"{n}"} for n in range(50)])
    supervisor = start_supervisor(1, "--drain", wait=False, **LONG_LEASE)
    assert supervisor.wait(60) == 0, supervisor.output
    assert Mark.objects.values("label").distinct().count() == 51
    assert not Job.objects.exists()


def test_a_supervisor_works_as_process_number_one_and_reaps_orphans(start_supervisor, gate, wait_for_marks):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a process namespace needs root")
    wrapper = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    outer = start_supervisor(1, wrapper=wrapper, wait=False)
    orphaned = leave_orphan.enqueue(label="parent")
    wait_for_marks("parent")
    wait_for(lambda: get_job(orphaned.id).status == "succeeded")
    (inner,) = children_of(outer.pid)
    wait_for(lambda: zombies_of(inner) == [], message="the orphan to be reaped")
    os.kill(inner, signal.SIGTERM)
    assert outer.wait() == 0, outer.output


def zombies_of(parent):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, its_parent, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if state == "Z" and int(its_parent) == parent:
            found.append(stat)
    return found


def test_the_supervisor_holds_no_database_connection_and_its_children_inherit_nothing(start_supervisor):
    supervisor = start_supervisor(2)
    if not Path("/proc/self/fd").exists():
        pytest.skip("open descriptors are read from /proc")
    assert len(sockets_of(supervisor.pid)) == 2, "a channel for each child, and nothing else"
    first, second = (sockets_of(pid) for pid in supervisor.workers())
    assert not first & second


def sockets_of(pid):
    links = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    return {link for link in links if link.startswith("socket:")}


def test_children_killed_again_and_again_under_load_lose_nothing_and_repeat_only_what_they_lost(start_supervisor):
    supervisor = start_supervisor(2, "--concurrency", "4", **LONG_LEASE)
    ids = []
    for _ in range(3):
        ids += [one.id for one in mark.using(max_attempts=100).enqueue_many([{"label": "x"}] * 200)]
        os.kill(random.choice(sorted(supervisor.wait_for_workers(1))), signal.SIGKILL)
        supervisor.wait_for_workers(2)
    wait_for(lambda: not Job.objects.exists(), timeout=90, message=supervisor.output)
    assert {get_job(job_id).status for job_id in ids} == {"succeeded"}
    lost = sum(len(get_job(job_id).errors) for job_id in ids)
    assert len(ids) <= Mark.objects.count() <= len(ids) + lost


def test_a_process_shows_itself_with_its_versions_and_how_many_jobs_it_runs(start_supervisor, gate, wait_for_marks):
    start_supervisor(1, RELEASE="2026-11-29.1")
    for n in range(2):
        hold.enqueue(label=f"{n}", until=str(gate))
    wait_for(lambda: Worker.objects.get().running == 2, timeout=30)
    row = Worker.objects.get()
    assert (row.release, row.version, row.django_version) == (
        "2026-11-29.1",
        django_jobs.__version__,
        django.get_version(),
    )
    assert row.python_version == platform.python_version()
    assert row.host == socket.gethostname()
    assert row.queues == [{"queues": ["default", "urgent", "bulk"], "slots": 10}]
    gate.touch()
