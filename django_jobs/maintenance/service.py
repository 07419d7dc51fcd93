"""Maintenance: small services that any worker may run, all of them in one thread with one session.

A service does one thing in ``run_once`` and returns what it did. Every one of them is safe to run in any
number of processes at once. A service that fails is logged and tried again at its next turn; it never stops
the others, nor the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from django.db import connections

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable, Session
from django_jobs.logs import get_logger

logger = get_logger("django_jobs.maintenance")


class Service(Protocol):
    """``pause``: until the next turn, asked after each."""

    name: str

    @property
    def pause(self) -> timedelta: ...

    def run_once(self, session: Session) -> int:
        """Do what is due; returns how many things were done."""
        ...

    def close(self, session: Session) -> None:
        """The last turn, when the process ends."""
        ...


class Maintenance:
    def __init__(self, open_session: Callable[[], Session], services: Sequence[Service]) -> None:
        self._open_session = open_session
        self._services = services
        self._due = dict.fromkeys(range(len(services)), 0.0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="django_jobs maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        self._stop.set()
        self._thread.join(timeout)

    def _serve(self) -> None:
        session = self._open_session()
        while not self._stop.wait(self._until_next()):
            self.run_due(session)
        for service in self._services:
            _guarded(service, service.close, session)
        session.close()
        connections.close_all()

    def _until_next(self) -> float:
        return max(min(self._due.values(), default=60.0) - clock.monotonic(), 0.0)

    def run_due(self, session: Session) -> None:
        for number, service in enumerate(self._services):
            if clock.monotonic() >= self._due[number]:
                _guarded(service, service.run_once, session)
                self._due[number] = clock.monotonic() + service.pause.total_seconds()


def _guarded(service: Service, act: Callable[[Session], object], session: Session) -> None:
    try:
        act(session)
    except EngineUnavailable as error:
        logger.warning("The %s could not do its work, and will try again: %s", service.name, error)
    except Exception:
        logger.exception("The %s failed, and will try again.", service.name)
