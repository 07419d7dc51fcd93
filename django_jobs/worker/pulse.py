"""Signs of life of the loop and the renewer, and the end of a process in which one of them stands still.

A process without them takes jobs and does not finish them, or finishes jobs that run elsewhere by now, so it ends
itself, to be replaced. Waiting for the database is no standing still: then the process is not *ready*, keeps its
running jobs, and goes on when the answer comes. Pauses are counted in turns of the watchdog's own thread, so a
process that was stopped, or that native code kept from running, is not taken for a sick one when it goes on.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta

from django_jobs.engines.protocol import Session
from django_jobs.logs import get_logger

from . import exit_codes

logger = get_logger("django_jobs.worker")

TURN_SECONDS = 1.0
SLOW_TURNS = 5
# Each of its calls to the database ends within seconds, and it beats between its services.
MAINTENANCE_STANDSTILL = timedelta(minutes=10)


class Pulse:
    """Of one thread: it beats, and the watchdog feels. ``patience``: the longest silence that is in order."""

    def __init__(self, patience: timedelta, session: Session | None = None) -> None:
        self.session = session
        self.missed = 0
        self._patience = patience.total_seconds()
        self._rest = 0.0
        self._beats = self._felt = 0

    def beat(self, rest: float = 0.0) -> None:
        """``rest``: the seconds that the thread is about to wait for an event, which are no silence."""
        self._rest = rest
        self._beats += 1

    def feel(self) -> None:
        """Called once each turn."""
        self.missed = 0 if self._beats != self._felt else self.missed + 1
        self._felt = self._beats

    @property
    def waits_for_database(self) -> bool:
        return self.session is not None and self.session.calling

    @property
    def slow(self) -> bool:
        """Has it been waiting for the database for some time?"""
        return self.missed >= SLOW_TURNS and self.waits_for_database

    @property
    def stopped(self) -> bool:
        most = max(int((self._patience + self._rest) / TURN_SECONDS), 1)
        return self.missed > most and not self.waits_for_database


class Watchdog:
    """``each_turn`` is called in its thread; ``end`` ends the process."""

    def __init__(
        self, pulses: Mapping[str, Pulse], each_turn: Callable[[], None], end: Callable[[int], None] | None = None
    ) -> None:
        self._pulses = pulses
        self._each_turn = each_turn
        self._end = end or end_process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="django_jobs watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stop.set()
        self._thread.join(timeout)

    def _serve(self) -> None:
        while not self._stop.wait(TURN_SECONDS):
            self.turn()

    def turn(self) -> None:
        for name, pulse in self._pulses.items():
            pulse.feel()
            if pulse.stopped:
                logger.critical("The %s has stood still for %d s: ending this process.", name, pulse.missed)
                self._end(exit_codes.STANDSTILL)
        try:
            self._each_turn()
        except Exception:
            logger.exception("The state of this process could not be told.")


def end_process_in(seconds: float, code: int) -> None:
    """The interpreter may end in its own way until then; it would wait for ever for a thread that a handler left."""
    timer = threading.Timer(seconds, end_process, [code])
    timer.daemon = True
    timer.start()


def end_process(code: int) -> None:
    """Without waiting for threads, as the interpreter would."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
