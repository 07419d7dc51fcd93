"""The job types that are measured: two that do nothing, two that tell when they were started."""

from time import perf_counter

from benchmarks.stamps import write_stamp
from django_jobs import job


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
