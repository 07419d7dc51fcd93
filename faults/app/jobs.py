"""Job types under attack: three that record, and those that are a fault themselves.

The result of a run is its token, so that one can see whose outcome was written.
"""

import asyncio
import ctypes
import time

from django.db import IntegrityError, connection, transaction

from django_jobs import RunningJob, job
from faults.app.models import Effect, Order
from faults.journal import note_death, noted

MANY = 1000
LEAK: list[bytearray] = []


def leave_effect(run: RunningJob, atomic: bool = False) -> None:
    Effect.objects.create(job_id=run.id, token=run.fencing_token, atomic=atomic)


@job("record", max_attempts=MANY)
def record(run: RunningJob, seconds: float) -> int:
    with noted(run):
        time.sleep(seconds)  # the handler's work
        leave_effect(run)
    return run.fencing_token


@job("record_atomic", max_attempts=MANY, atomic=True)
def record_atomic(run: RunningJob, seconds: float) -> int:
    with noted(run):
        time.sleep(seconds)  # the handler's work
        leave_effect(run, atomic=True)
    return run.fencing_token


@job("record_async", max_attempts=MANY)
async def record_async(run: RunningJob, seconds: float) -> int:
    with noted(run):
        await asyncio.sleep(seconds)
        await Effect.objects.acreate(job_id=run.id, token=run.fencing_token)
    return run.fencing_token


RECORDING = {handle.job_type.name: handle for handle in (record, record_atomic, record_async)}


@job("segfault", max_attempts=2)
def segfault(run: RunningJob) -> None:
    with noted(run):
        note_death(run)
        ctypes.string_at(0)


@job("leak", max_attempts=MANY)
def leak(run: RunningJob, megabytes: int) -> None:
    with noted(run):
        LEAK.append(bytearray(b"x" * megabytes * 1_000_000))
        leave_effect(run)


@job("hang", timeout=0.5, max_attempts=2)
def hang(run: RunningJob) -> None:
    with noted(run):
        while True:
            time.sleep(1)  # it never returns: that is the fault


@job("block_loop")
async def block_loop(run: RunningJob, seconds: float) -> int:
    with noted(run):
        time.sleep(seconds)  # noqa: ASYNC251 - it blocks the event loop: that is the fault
    await Effect.objects.acreate(job_id=run.id, token=run.fencing_token)
    return run.fencing_token


@job("close_connection", max_attempts=MANY)
def close_connection(run: RunningJob) -> None:
    with noted(run):
        leave_effect(run)
        connection.connection.close()


@job("leave_open", max_attempts=2)
def leave_open(run: RunningJob) -> None:
    with noted(run):
        transaction.set_autocommit(False)
        leave_effect(run)


@job("leave_aborted", max_attempts=2)
def leave_aborted(run: RunningJob) -> None:
    with noted(run):
        transaction.set_autocommit(False)
        leave_effect(run)
        swallow_integrity_error(run)


@job("swallow", max_attempts=2, atomic=True)
def swallow(run: RunningJob) -> None:
    with noted(run):
        leave_effect(run, atomic=True)
        swallow_integrity_error(run)


def swallow_integrity_error(run: RunningJob) -> None:
    try:
        with transaction.atomic(savepoint=False):
            Order.objects.create(job_id=run.id)
    except IntegrityError:
        return
    raise AssertionError("the order is there already")
