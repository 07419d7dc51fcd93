"""When handlers were started, told by a worker process through a file: one line a run, number and nanoseconds.

The monotonic clock is that of the machine, so that instants of two processes can be compared.
"""

import os
import time
from functools import cache
from pathlib import Path

VARIABLE = "BENCHMARK_STAMPS"


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def write_stamp(number: int) -> None:
    now = now_ns()
    os.write(_descriptor(), f"{number} {now}\n".encode())


def read_stamps(path: Path) -> dict[int, int]:
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return {int(number): int(instant) for number, instant in map(str.split, lines)}


@cache
def _descriptor() -> int:
    return os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
