"""Job types for tests that start worker processes. What they do is seen in ``Mark`` rows."""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

from django.db import OperationalError, connections, transaction
from django.utils import timezone, translation

from django_jobs import RunningJob, job
from django_jobs.engines import config
from django_jobs.worker import process
from django_jobs.worker.poke import Poke
from django_jobs.worker.renewer import Renewer

from .models import Mark


def leave_mark(label):
    Mark.objects.create(label=label, pid=os.getpid())


@job("mark")
def mark(label: str):
    leave_mark(label)


@job("mark_atomic", atomic=True)
def mark_atomic(label: str):
    leave_mark(label)


@job("hold", max_attempts=5)
def hold(run: RunningJob, label: str, until: str):
    """Run until the file ``until`` is there."""
    leave_mark(f"{label} started")
    while not Path(until).exists():
        time.sleep(0.02)  # a handler polls for a file: it shares no event with the test's process
    leave_mark(f"{label} ended")
    return run.attempt


@job("hold_async", max_attempts=5)
async def hold_async(label: str, until: str):
    await Mark.objects.acreate(label=f"{label} started", pid=os.getpid())
    try:
        while not await asyncio.to_thread(Path(until).exists):  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # a handler polls for a file: it shares no event with the test's process
    except asyncio.CancelledError:
        await Mark.objects.acreate(label=f"{label} cancelled", pid=os.getpid())
        raise


@job("wait_in_thread", max_attempts=5)
async def wait_in_thread(label: str, seconds: int):
    """Cancelled, it leaves a thread behind that nobody can stop."""
    await Mark.objects.acreate(label=f"{label} started", pid=os.getpid())
    await asyncio.to_thread(time.sleep, seconds)  # the call that nobody can stop


@job("hold_delicate", max_attempts=5, on_lost="bury")
def hold_delicate(run: RunningJob, label: str, until: str):
    hold(run, label, until)


@job("spin")
def spin(label: str):
    leave_mark(f"{label} started")
    while True:
        pass


@job("overrun", timeout=0.3, max_attempts=5)
def overrun(label: str, until: str):
    leave_mark(f"{label} started")
    while not Path(until).exists():
        time.sleep(0.02)  # a handler polls for a file: it shares no event with the test's process


@job("poison", max_attempts=2)
def poison(label: str):
    leave_mark(label)
    os.kill(os.getpid(), signal.SIGKILL)


@job("freeze", max_attempts=5)
def freeze(run: RunningJob, until: str):
    """Its first run is native code that keeps the GIL until somebody opens the named pipe ``until``."""
    if run.attempt == 1:
        ctypes.PyDLL(None).open(os.fsencode(until), os.O_RDONLY)
    leave_mark(f"attempt {run.attempt}")
    return run.attempt


@job("fail_until", max_attempts=1)
def fail_until(number: int, until: str):
    """Fail until the file ``until`` is there."""
    if not Path(until).exists():
        raise ConnectionError(f"Invoice {number}: the printer at /dev/lp{number} is on fire")
    leave_mark(f"printed {number}")


@job("nap")
def nap(label: str, seconds: float):
    time.sleep(seconds)  # the handler's work
    leave_mark(label)


@job("quit_process", max_attempts=1)
def quit_process(label: str, code: int):
    leave_mark(label)
    os._exit(code)


@job("instant")
def instant():
    pass


@job("die_now", max_attempts=1)
def die_now():
    os.kill(os.getpid(), signal.SIGKILL)


@job("leave_orphan")
def leave_orphan(label: str):
    """Start a program that starts another one, does not wait for it and ends first."""
    subprocess.run(["sh", "-c", "(sleep 0.3 &)"], check=True)
    leave_mark(label)


# Handlers with a process of their own.


class TwoArguments(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, first, second):
        super().__init__("a single text")


def do_segfault():
    ctypes.string_at(0)


def do_print():
    sys.stdout.write("x" * 10_000_000)
    sys.stdout.flush()
    return "printed"


def do_raise_two_arguments():
    raise TwoArguments(1, 2)


def do_hide_death():
    """A program that inherits everything lives on after the handler's process."""
    if os.fork() == 0:
        time.sleep(5)  # outlives its parent: that is the trouble
        os._exit(0)
    os._exit(4)


def do_garble():
    """Write to every descriptor, the one that the worker listens to as well."""
    for fileno in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(fileno, b'\xff no JSON\n[1]\n{"ended": 5}\n')


def do_raise(error):
    raise error


def do_travel():
    seen = [translation.get_language(), timezone.get_current_timezone_name(), os.getpid()]
    translation.activate("es")
    timezone.activate("Asia/Tokyo")
    return seen


def do_leave_transaction():
    transaction.atomic().__enter__()
    leave_mark("lost")


def kept_session():
    """The session of this run, which its thread keeps for the next one."""
    connections["default"].settings_dict.update(CONN_MAX_AGE=600, CONN_HEALTH_CHECKS=True)
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


TRICKS = {
    "leave transaction": do_leave_transaction,
    "host": lambda: connections["default"].settings_dict["HOST"],
    "kept session": kept_session,
    "mark": lambda: leave_mark("clean"),
    "garble": do_garble,
    "long": lambda: "y" * 60_000,
    "return": lambda: {"pid": os.getpid()},
    "raise": do_raise_two_arguments,
    "lambda": lambda: lambda: None,
    "exit": lambda: sys.exit(7),
    "os._exit": lambda: os._exit(3),
    "segfault": do_segfault,
    "print": do_print,
    "hide death": do_hide_death,
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "GeneratorExit": lambda: do_raise(GeneratorExit("out")),
    "KeyboardInterrupt": lambda: do_raise(KeyboardInterrupt("typed")),
    "CancelledError": lambda: do_raise(asyncio.CancelledError("cancelled")),
    "TimeoutError": lambda: do_raise(TimeoutError("late")),
    "travel": do_travel,
}


@job("trick", isolation="process", max_attempts=1, timeout=20)
def trick(name: str):
    return TRICKS[name]()


@job("trick_delicate", isolation="process", max_attempts=5, on_lost="bury")
def trick_delicate(name: str):
    return TRICKS[name]()


@job("hang_isolated", isolation="process", max_attempts=1, timeout=0.3)
def hang(label: str):
    leave_mark(label)
    while True:
        pass


@job("hold_isolated", isolation="process", max_attempts=5)
def hold_isolated(run: RunningJob, label: str, until: str):
    """Shows all that a run can do."""
    with run.once("marked") as first:
        if first:
            leave_mark(f"{label} started")
    run.progress(0.5, "half way")
    run.report(rows_processed=7)
    while not (Path(until).exists() or run.is_cancelled() or run.lease_lost()):
        time.sleep(0.02)  # a handler polls for a file: it shares no event with the test's process
    leave_mark(f"{label} cancelled={run.is_cancelled()} lost={run.lease_lost()}")
    return {"pid": os.getpid(), "attempt": run.attempt, "token": run.fencing_token, "context": run.context}


@job("hog_isolated", isolation="process", max_attempts=1)
def hog_isolated(label: str, seconds: int):
    """Native code that lets no other thread of its process run."""
    leave_mark(label)
    ctypes.PyDLL(None).sleep(seconds)  # holds the GIL: that is the trouble
    return os.getpid()


@job("mark_atomic_isolated", atomic=True, isolation="process")
def mark_atomic_isolated(label: str, fail: bool):
    leave_mark(label)
    if fail:
        raise ValueError("rolled back")
    return "marked"


def terminate_once(run: RunningJob):
    """Its first attempt loses its session."""
    if run.attempt == 1:
        with contextlib.suppress(OperationalError), connections["default"].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    leave_mark(f"attempt {run.attempt}")


@job("terminated_isolated", isolation="process")
def terminated_isolated(run: RunningJob):
    terminate_once(run)


# Handlers that break the worker they run in.


@job("stop_loop")
def stop_loop():
    def stand_still(poke, filenos, timeout):
        threading.Event().wait()

    Poke.wait_among = stand_still


@job("stop_renewer")
def stop_renewer():
    def die(renewer, session):
        raise SystemExit

    Renewer._tried = die


# How patient a process that a test starts is.

if seconds := os.environ.get("TEST_SHORTEST_PATIENCE"):
    config.SHORTEST_PATIENCE = timedelta(seconds=int(seconds))
if seconds := os.environ.get("TEST_SHORTEST_STANDSTILL"):
    process.SHORTEST_STANDSTILL = timedelta(seconds=int(seconds))


# Handlers that a test writes and changes.

if folder := os.environ.get("TEST_MORE_HANDLERS"):
    sys.path.insert(0, folder)
    import changing_handlers  # noqa: F401
