"""Wakes the loop from another thread or from a signal handler."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from django_jobs.polling import wait_readable


class Poke:
    """A pipe and a flag. ``wait`` is the loop's; ``poke`` is everybody's, and safe in a signal handler."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._poked = False

    def poke(self) -> None:
        if not self._poked:
            self._poked = True
            with suppress(BlockingIOError):
                os.write(self._write, b"!")

    def wait(self, fileno: int | None, timeout: float) -> bool:
        """Until poked, until ``fileno`` is readable, or until ``timeout`` seconds passed. False if time is over."""
        return self.wait_among(() if fileno is None else (fileno,), timeout)

    def wait_among(self, filenos: Iterable[int], timeout: float) -> bool:
        """The same, for any number of them."""
        readable = wait_readable(self._read, *filenos, timeout=timeout)
        if self._read in readable:
            with suppress(BlockingIOError):
                os.read(self._read, 512)
        self._poked = False
        return bool(readable)

    def close(self) -> None:
        """A thread that is left behind may still poke. That writes nothing: the descriptor may be another's by then."""
        self._poked = True
        os.close(self._read)
        os.close(self._write)
