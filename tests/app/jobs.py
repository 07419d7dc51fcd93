"""Job types for tests that start worker processes. What they do is seen in ``Mark`` rows."""

import asyncio
import ctypes
import os
import signal
import time
from pathlib import Path

from django_jobs import RunningJob, job

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
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        await Mark.objects.acreate(label=f"{label} cancelled", pid=os.getpid())
        raise


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


@job("nap")
def nap(label: str, seconds: float):
    time.sleep(seconds)  # the handler's work
    leave_mark(label)
