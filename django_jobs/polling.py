"""Waiting for file descriptors, also those above 1023, which ``select()`` refuses: a busy process has them."""

from __future__ import annotations

import select
from math import ceil


def wait_readable(*filenos: int, timeout: float | None) -> set[int]:
    """Those of ``filenos`` that are readable, as soon as there is one; none after ``timeout`` seconds. None waits for
    ever.
    """
    poll = select.poll()
    for fileno in filenos:
        poll.register(fileno, select.POLLIN)
    milliseconds = None if timeout is None else ceil(max(timeout, 0.0) * 1000)
    return {fileno for fileno, _ in poll.poll(milliseconds)}
