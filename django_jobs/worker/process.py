"""One worker process: puts the parts together, runs the loop in the calling thread, and takes them apart again.

Signals are optional: they are handled when this runs in the main thread, so that a worker can also be
embedded in a test.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType

from django_jobs import __version__
from django_jobs.conf import get_settings
from django_jobs.engines import open_session, stand_alone
from django_jobs.engines.protocol import EngineConfig, Session
from django_jobs.ids import uuid7
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.maintenance.reporter import Reporter
from django_jobs.maintenance.service import Maintenance, Service
from django_jobs.maintenance.services import standard_services
from django_jobs.models import Worker

from .busy import BusyRows
from .dispatcher import Dispatcher
from .endings import lost
from .executor import Executor
from .held import Held
from .loop import Loop
from .overruns import Overruns
from .poke import Poke
from .renewer import Renewer
from .slots import Slots
from .wake import Sleeper

logger = get_logger("django_jobs.worker")

EXIT_DONE = 0
EXIT_STUCK = 70
PATIENCE_SECONDS, HASTE_SECONDS = 5.0, 0.5
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """``groups``: queues that share slots, with how many. ``drain``: end when nothing is left within this horizon."""

    groups: Sequence[tuple[tuple[str, ...], int]]
    drain: timedelta | None = None
    shutdown_timeout: timedelta | None = None
    maintenance: bool = True


class WorkerProcess:
    """``run()`` returns the exit code; ``stop()`` may be called from any thread."""

    def __init__(self, options: WorkerOptions) -> None:
        settings = get_settings()
        self.options = options
        self.settings = settings
        self.id = f"{socket.gethostname()[:40]}-{os.getpid()}-{uuid7().hex[-12:]}"
        self.held = Held()
        self.counts = Counts()
        self._poke = Poke()
        self._ending = threading.Event()
        self._groups = [Slots(queues, size) for queues, size in options.groups]
        self._session = open_session(self._engine_config())
        executor = Executor(self._session.clock.milliseconds, lambda: self._ending.wait(1.0))
        self._dispatcher = Dispatcher(executor)
        self.loop = Loop(
            session=self._session,
            groups=self._groups,
            held=self.held,
            counts=self.counts,
            dispatcher=self._dispatcher,
            sleeper=Sleeper(self._session, settings.poll_every, settings.poll_every_unproven),
            poke=self._poke,
            busy_rows=BusyRows(self._session, settings.lease),
            overruns=Overruns(self._dispatcher.tasks, settings.timeout_grace),
            drain=options.drain,
            shutdown_timeout=(
                settings.shutdown_timeout if options.shutdown_timeout is None else options.shutdown_timeout
            ),
        )

    @property
    def left_behind(self) -> bool:
        """Do handlers still run whose jobs were given to others? Then the process must end without waiting for them."""
        return self.loop.left_behind

    def stop(self) -> None:
        """Ask to end; a second call: at once."""
        self.loop.stop()

    def run(self) -> int:
        with _stop_on_signal(self.stop):
            self._serve()
        self._poke.close()
        return EXIT_STUCK if self.loop.overruns.stuck else EXIT_DONE

    def _serve(self) -> None:
        renewer = Renewer(lambda: open_session(self._engine_config()), self.held, self.settings.renewal_pause)
        maintenance = self._maintenance()
        renewer.start()
        maintenance.start()
        logger.info("%s.", self.describe())
        try:
            self.loop.run()
        finally:
            self._ending.set()
            patience = HASTE_SECONDS if self.loop.left_behind else PATIENCE_SECONDS
            renewer.stop(patience)
            maintenance.stop(patience)
            self._dispatcher.close(0 if self.loop.left_behind else 1.0)
            self._session.close()

    def _engine_config(self) -> EngineConfig:
        return EngineConfig(
            alias=self.settings.database,
            worker=self.id,
            lease=self.settings.lease,
            unknown_patience=self.settings.unknown_patience,
            listen=self.settings.listen,
        )

    def describe(self) -> str:
        """One line about who this is and what it serves."""
        served = ", ".join(f"{'+'.join(group.queues)} ({group.size} slots)" for group in self._groups)
        return f"Worker {self.id} serves {served}"

    def _maintenance(self) -> Maintenance:
        services: list[Service] = [Reporter(self._row(), self.settings.database, self.held.__len__, self.counts)]
        if self.options.maintenance:
            services += standard_services(self.settings, lost, self._poke.poke, self.counts)
        return Maintenance(self._open_maintenance_session, services)

    def _open_maintenance_session(self) -> Session:
        """Called in the thread of maintenance, whose services use Django's connection too."""
        stand_alone(self._engine_config())
        return open_session(self._engine_config())

    def _row(self) -> Worker:
        return Worker(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=[{"queues": list(group.queues), "slots": group.size} for group in self._groups],
            version=__version__,
        )


@contextmanager
def _stop_on_signal(stop: Callable[[], None]) -> Iterator[None]:
    """The first signal stops gracefully, the second at once, the third ends the process without another word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 2:
            os._exit(128 + number)
        stop()

    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
