"""``runjobworker --processes N``: keeps N worker processes, replaces the dead and clears up after them.

The supervisor runs no job and, while it spawns, holds no connection; children are new interpreters, never forks. It
notices the end of a child at once (SIGCHLD), frees its leases with the cause on record, and starts another one:
at once, or after growing pauses if children do not live. A child that is about to leave (``--max-jobs``,
``--max-memory``, a changed module) is replaced first and ends when its running jobs have. When the supervisor
itself is killed, the children see the end of the channel and stop gracefully.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.engines.config import EngineConfig
from django_jobs.logs import get_logger

from . import exit_codes
from .child import Child, reap_strangers
from .freeing import Freer
from .poke import Poke
from .registration import new_worker_id
from .signals import STOP_SIGNALS, handling
from .supervised import AT_ONCE, GRACEFULLY
from .systemd import notify_systemd
from .vitals import Vitals

logger = get_logger("django_jobs.supervisor")

TURN_SECONDS = 1.0
FIRST_PAUSE, LAST_PAUSE, LAST_PAUSE_RELOADING = 0.5, 30.0, 2.0
STEADY_SECONDS = 10.0
LAST_WORDS_SECONDS = 20.0
SHORTEST_SILENCE = 10.0
START_SECONDS = 120.0
FREEING_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorOptions:
    """``child_options``: the command line of each child."""

    processes: int
    child_options: Sequence[str]
    shutdown_timeout: timedelta
    drain: bool = False
    reload: bool = False


class Seat:
    """The place of one worker process, with the pause before its next holder."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.done = False
        self.due = 0.0
        self._failures = 0

    def vacate(self, *, steady: bool, longest: float) -> float:
        """Returns the pause before the next holder: none after one that did its time."""
        self.child = None
        self._failures = 0 if steady else self._failures + 1
        pause = 0.0 if steady else min(FIRST_PAUSE * 2.0 ** (self._failures - 1), longest)
        self.due = clock.monotonic() + pause
        return pause


class Supervisor:
    """``run()`` returns the exit code. Needs the main thread, for its signals."""

    def __init__(self, options: SupervisorOptions) -> None:
        settings = get_settings()
        self.options = options
        self._seats = [Seat() for _ in range(options.processes)]
        self._leaving: list[Child] = []
        self._poke = Poke()
        self._asked = self._told = 0
        self._asked_at = 0.0
        self._trouble = False
        self._silence = max(2 * settings.lease.total_seconds(), SHORTEST_SILENCE)
        self._turned_at = clock.monotonic()
        self.id = f"supervisor-{new_worker_id()}"
        config = EngineConfig(alias=settings.database, worker=self.id, lease=settings.lease)
        self._freer = Freer(config, give_up=2 * settings.lease)

    @property
    def _children(self) -> list[Child]:
        return [*(seat.child for seat in self._seats if seat.child is not None), *self._leaving]

    def run(self) -> int:
        self._freer.start()
        with handling(dict.fromkeys(STOP_SIGNALS, self._note_signal) | {signal.SIGCHLD: self._note_death}):
            self._staff()
            notify_systemd("READY=1")
            while self._children or not self._finished():
                self._wait()
                self._turn()
        notify_systemd("STOPPING=1")
        self._freer.close(FREEING_SECONDS)
        self._poke.close()
        return exit_codes.STUCK if self._trouble else exit_codes.DONE

    def vitals(self) -> Vitals:
        """Of all children together. Asked by other threads."""
        states = [child.state for child in self._children]
        return Vitals(
            worker=self.id,
            live=clock.monotonic() - self._turned_at < 10 * TURN_SECONDS,
            ready=any(state.get("ready") for state in states),
            running=sum(state.get("running", 0) for state in states),
            processes=len(states),
        )

    # Signals

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked += 1
        if self._asked > AT_ONCE:
            for child in self._children:
                child.kill("by the third signal to its supervisor")
            os._exit(128 + number)
        self._poke.poke()

    def _note_death(self, number: int, frame: FrameType | None) -> None:
        self._poke.poke()

    # One turn

    def _wait(self) -> None:
        due = min((seat.due for seat in self._seats if seat.child is None and not seat.done), default=None)
        timeout = TURN_SECONDS if due is None or self._asked else min(max(due - clock.monotonic(), 0.0), TURN_SECONDS)
        self._poke.wait_among([child.fileno() for child in self._children if child.listens], timeout)

    def _turn(self) -> None:
        elapsed = min(clock.monotonic() - self._turned_at, TURN_SECONDS)
        self._turned_at = clock.monotonic()
        notify_systemd("WATCHDOG=1")
        for child in self._children:
            child.silent_for += elapsed
            child.listen()
        self._forward()
        self._bury()
        self._replace_leaving()
        self._kill_silent()
        if not self._asked:
            self._staff()

    def _forward(self) -> None:
        """Tell each child once of each signal, and those that came late as well."""
        if self._asked and not self._asked_at:
            self._asked_at = clock.monotonic()
        while self._told < min(self._asked, AT_ONCE):
            self._told += 1
            logger.info("Stopping %d processes%s.", len(self._children), "" if self._told < AT_ONCE else " at once")
            for child in self._children:
                child.tell(stop=self._told)

    def _bury(self) -> None:
        for child in self._children:
            if child.has_ended():
                self._clear_up(child)
                child.close()
        if os.getpid() == 1:
            reap_strangers({child.pid for child in self._children})

    def _clear_up(self, child: Child) -> None:
        seat = next((seat for seat in self._seats if seat.child is child), None)
        if child.worker and not child.ended_in_order:
            self._freer.free(child.worker, child.cause, child.ledger.started())
        if child.returncode and child.worker and self._asked:
            self._trouble = True
        if seat is None:
            self._leaving.remove(child)
            self._note_end(child)
        elif self.options.drain and child.ended_in_order and not child.state.get("retiring"):
            seat.child, seat.done = None, True
        else:
            self._plan_successor(seat, child)

    def _plan_successor(self, seat: Seat, child: Child) -> None:
        steady = child.age > STEADY_SECONDS or child.ended_in_order
        pause = seat.vacate(steady=steady, longest=LAST_PAUSE_RELOADING if self.options.reload else LAST_PAUSE)
        self._note_end(child, f" Another one is started{f' in {pause:g} s' if pause else ''}.")

    def _note_end(self, child: Child, then: str = "") -> None:
        """A process that was to end is no news; one that died is."""
        if self._asked:
            return
        if child.ended_in_order:
            logger.info("Process %d (%s) has ended: %s.%s", child.pid, child.worker, child.state["ended"], then)
        else:
            who = child.worker or "it had not started yet"
            logger.warning("%s (pid %d, %s).%s", child.cause, child.pid, who, then)

    def _replace_leaving(self) -> None:
        """A child that is to end makes room at once; its running jobs have their time."""
        for seat in self._seats:
            child = seat.child
            if child is None or self._asked:
                continue
            reason = child.state.get("retiring")
            if changed := child.state.get("changed"):
                reason = f"{changed} changed"
                child.tell(stop=GRACEFULLY)
            if reason:
                logger.info("Replacing process %d: %s.", child.pid, reason)
                self._leaving.append(child)
                seat.vacate(steady=True, longest=0.0)

    def _kill_silent(self) -> None:
        out_of_time = self._asked_at and clock.monotonic() - self._asked_at > self._patience()
        for child in self._children:
            if out_of_time:
                child.kill("by its supervisor: it did not stop in time")
            elif child.silent_for > (self._silence if child.worker else START_SECONDS):
                child.kill(f"by its supervisor: not heard of for {child.silent_for:.0f} s")

    def _patience(self) -> float:
        """Seconds that children have to stop, with some for the hand-back."""
        waits = 0.0 if self._asked >= AT_ONCE else self.options.shutdown_timeout.total_seconds()
        return waits + LAST_WORDS_SECONDS

    def _staff(self) -> None:
        for seat in self._seats:
            if seat.child is None and not seat.done and seat.due <= clock.monotonic():
                self._fill(seat)

    def _fill(self, seat: Seat) -> None:
        """No memory, no process and no descriptor are left for now: that may pass, and the other children go on."""
        try:
            seat.child = Child(self.options.child_options)
        except OSError as error:
            pause = seat.vacate(steady=False, longest=LAST_PAUSE)
            logger.error("No process could be started, and it is tried again in %g s: %s", pause, error)

    def _finished(self) -> bool:
        return self._asked > 0 or all(seat.done for seat in self._seats)
