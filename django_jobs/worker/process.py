"""One worker process: puts the parts together, runs the loop in the calling thread, and takes them apart again.

Signals are optional: they are handled when this runs in the main thread, so that a worker can also be
embedded in a test.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django_jobs import __version__
from django_jobs.conf import get_settings
from django_jobs.engines import open_session
from django_jobs.engines.protocol import EngineConfig
from django_jobs.ids import uuid7
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.maintenance.reporter import Reporter
from django_jobs.maintenance.upkeep import Upkeep
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
from .signals import stop_on_signals
from .slots import Slots
from .wake import Sleeper

logger = get_logger("django_jobs.worker")

EXIT_DONE = 0
EXIT_STUCK = 70
PATIENCE_SECONDS, HASTE_SECONDS = 5.0, 0.5


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
        self._upkeep = self._maintenance()
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
            hasten=self._upkeep.hasten,
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
        with stop_on_signals(self.stop):
            self._serve()
        self._poke.close()
        return EXIT_STUCK if self.loop.overruns.stuck else EXIT_DONE

    def _serve(self) -> None:
        renewer = Renewer(lambda: open_session(self._engine_config()), self.held, self.settings.renewal_pause)
        renewer.start()
        self._upkeep.start()
        logger.info("%s.", self.describe())
        try:
            self.loop.run()
        finally:
            self._ending.set()
            patience = HASTE_SECONDS if self.loop.left_behind else PATIENCE_SECONDS
            renewer.stop(patience)
            self._upkeep.stop(patience)
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

    def _maintenance(self) -> Upkeep:
        return Upkeep(
            self.settings,
            lambda: open_session(self._engine_config()),
            own=[Reporter(self._row(), self.settings.database, self.held.__len__, self.counts)],
            judge=lost,
            counts=self.counts,
            poke=self._poke.poke,
            shared=self.options.maintenance,
        )

    def _row(self) -> Worker:
        return Worker(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=[{"queues": list(group.queues), "slots": group.size} for group in self._groups],
            version=__version__,
        )
