"""The job types that are measured: two that do nothing, two that tell when they were started, and a mixture."""

import asyncio
from time import perf_counter

from benchmarks.stamps import write_stamp
from django_jobs import job
from django_jobs.handle import JobHandle
from django_jobs.models import Queue


@job("noop")
def noop(number: int) -> None:
    pass


@job("noop_async")
async def noop_async(number: int) -> None:
    pass


@job("stamp")
def stamp(number: int) -> None:
    write_stamp(number)


@job("stamp_async")
async def stamp_async(number: int) -> None:
    write_stamp(number)


@job("compute")
def compute(number: int) -> None:
    """A millisecond of Python, or so."""
    end = perf_counter() + 0.001
    while perf_counter() < end:
        pass


@job("mixed_thread")
def mixed_thread(number: int, text: str) -> dict[str, int]:
    return {"length": len(text)}


@job("mixed_task")
async def mixed_task(number: int, text: str) -> dict[str, int]:
    await asyncio.sleep(0)
    return {"length": len(text)}


@job("mixed_query")
def mixed_query(number: int, text: str) -> int:
    return Queue.objects.count()


@job("mixed_atomic", atomic=True)
def mixed_atomic(number: int, text: str) -> int:
    return Queue.objects.count()


@job("mixed_failing", max_attempts=1)
def mixed_failing(number: int, text: str) -> None:
    raise ValueError(f"number {number}: {text}")


@job("mixed_failing_task", max_attempts=1)
async def mixed_failing_task(number: int, text: str) -> None:
    raise ValueError(f"number {number}: {text}")


MIXED: list[JobHandle] = [mixed_thread, mixed_task, mixed_query, mixed_atomic, mixed_failing, mixed_failing_task]
