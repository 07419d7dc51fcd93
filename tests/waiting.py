"""The only way to wait in a test."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T | None], timeout: float = 10, message: str = "the condition to hold") -> T:
    """Return the first true value of ``condition()``; fail after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    pause = 0.001
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s for {message}")
        time.sleep(pause)  # the one place where a test waits
        pause = min(pause * 1.5, 0.05)
