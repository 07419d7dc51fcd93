"""Maintenance: small services, several of them in one thread with one session.

A service does one thing in ``run_once`` and returns what it did. Every one of them is safe to run in any
number of processes at once. A service that fails is logged and tried again at its next turn; it never stops
the others, nor the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from math import inf

from django.db import InterfaceError, OperationalError, connections

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable, Session
from django_jobs.logs import get_logger

logger = get_logger("django_jobs.maintenance")

# Of the engine's session, and of Django's connection.
UNAVAILABLE = (EngineUnavailable, OperationalError, InterfaceError)
# An outage for us, as after a failover, but no OperationalError.
READ_ONLY = "25006"

LONGEST_WAIT = 60.0
# How often a process that does not lead asks itself whether it leads by now.
FOLLOWER_WAIT = 5.0
# The pause of a service that has more to do: the others of its thread have their turns in between.
BUSY = timedelta(milliseconds=1)


class Service:
    """Does one thing. ``pause``: until the next turn, asked after each. None: until it is hastened."""

    name: str
    pause: timedelta | None

    def run_once(self, session: Session) -> int:
        """Do what is due; returns how many things were done."""
        raise NotImplementedError(f"{type(self).__name__} has to say what it does in a turn.")

    def close(self, session: Session) -> None:
        """The last turn, when the process ends: nothing, for a service whose work others go on with."""


class Maintenance:
    """``leading``: services that only the leader runs, while ``leads()``. ``beat`` is called in the thread whenever it
    turns, with the seconds that it is about to wait.
    """

    def __init__(
        self,
        open_session: Callable[[], Session],
        services: Sequence[Service],
        *,
        leading: Sequence[Service] = (),
        leads: Callable[[], bool] = lambda: False,
        beat: Callable[[float], None] = lambda rest: None,
        name: str = "maintenance",
    ) -> None:
        self._open_session = open_session
        self._services = (*services, *leading)
        self._leading = frozenset(service.name for service in leading)
        self._leads = leads
        self._beat = beat
        self._unavailable: set[str] = set()
        self._due = {service.name: 0.0 if service.pause is not None else inf for service in self._services}
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._serve, name=f"django_jobs {name}", daemon=True)

    @property
    def died(self) -> bool:
        """Has its thread ended although nobody asked it to?"""
        return self._thread.ident is not None and not self._thread.is_alive() and not self._stopped

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        self.ask_to_stop()
        self._thread.join(timeout)

    def ask_to_stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def hasten(self, name: str, seconds: float = 0.0) -> None:
        """Give the service its next turn in so many seconds, or earlier. Safe from any thread; unknown names pass."""
        at = clock.monotonic() + seconds
        with self._changed:
            if at < self._due.get(name, 0.0):
                self._due[name] = at
                self._changed.notify()

    def _serve(self) -> None:
        session = self._open_session()
        while self._wait():
            self.run_due(session)
        for service in self._services:
            self._guarded(service, service.close, session)
        session.close()
        connections.close_all()

    def _wait(self) -> bool:
        """Until a turn is due. False: this is the end."""
        with self._changed:
            while not self._stopped and (seconds := self._until_next()) > 0:
                self._beat(seconds)
                self._changed.wait(seconds)
            return not self._stopped

    def _until_next(self) -> float:
        active = [service.name for service in self._active()]
        longest = LONGEST_WAIT if len(active) == len(self._services) else FOLLOWER_WAIT
        return min([longest, *(self._due[name] - clock.monotonic() for name in active)])

    def _active(self) -> list[Service]:
        leads = self._leads()
        return [service for service in self._services if leads or service.name not in self._leading]

    def run_due(self, session: Session) -> None:
        for service in self._active():
            self._beat(0.0)
            if clock.monotonic() >= self._due[service.name]:
                # Cleared first: whoever hastens it during its turn gets another one.
                self._due[service.name] = inf
                self._guarded(service, service.run_once, session)
                if (pause := service.pause) is not None:
                    self.hasten(service.name, pause.total_seconds())

    def _guarded(self, service: Service, act: Callable[[Session], object], session: Session) -> None:
        try:
            act(session)
        except BaseException as error:
            # Also SystemExit, as from a project's notifier: it would end this thread, and nobody would hear of it.
            if isinstance(error, UNAVAILABLE) or getattr(error.__cause__, "sqlstate", "") == READ_ONLY:
                self._note_unavailable(service, error)
            else:
                logger.exception("The %s failed, and will try again.", service.name)
        else:
            self._note_available(service)

    def _note_unavailable(self, service: Service, error: BaseException) -> None:
        """Said once, however long it lasts."""
        if service.name not in self._unavailable:
            self._unavailable.add(service.name)
            logger.warning("The %s cannot do its work, and tries again until it can: %s", service.name, error)

    def _note_available(self, service: Service) -> None:
        if service.name in self._unavailable:
            self._unavailable.remove(service.name)
            logger.warning("The %s does its work again.", service.name)
