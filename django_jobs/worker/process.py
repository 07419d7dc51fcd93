"""One worker process: puts the parts together, runs the loop in the calling thread, and takes them apart again.

Signals are optional: they are handled when this runs in the main thread, so that a worker can also be
embedded in a test. Under a supervisor its orders count instead.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta

from django_jobs.conf import get_settings
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.maintenance.reporter import Reporter
from django_jobs.maintenance.upkeep import Upkeep
from django_jobs.models import Worker

from . import exit_codes
from .busy import BusyRows
from .dispatcher import Dispatcher
from .endings import lost
from .executor import Executor
from .held import Held
from .isolation import Isolation
from .ledger import Ledger
from .loop import Loop
from .overruns import Overruns
from .poke import Poke
from .pulse import MAINTENANCE_STANDSTILL, Pulse, Watchdog
from .recycling import Recycling
from .registration import new_worker_id, worker_row
from .renewer import Renewer
from .signals import stop_on_signals
from .slots import Slots
from .supervised import Supervised
from .systemd import notify_systemd
from .vitals import Vitals
from .wake import Sleeper

logger = get_logger("django_jobs.worker")

SHORTEST_STANDSTILL = timedelta(seconds=10)
PATIENCE_SECONDS, HASTE_SECONDS = 5.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """``groups``: queues that share slots, with how many. ``drain``: end when nothing is left within this horizon.

    ``max_jobs``, ``max_memory`` (MB): end, to be replaced, after so many. ``supervised``, ``ledger``: given in a
    child of a supervisor.
    """

    groups: Sequence[tuple[tuple[str, ...], int]]
    drain: timedelta | None = None
    shutdown_timeout: timedelta | None = None
    maintenance: bool = True
    max_jobs: int | None = None
    max_memory: int | None = None
    supervised: Supervised | None = None
    ledger: Ledger | None = None


class WorkerProcess:
    """``run()`` returns the exit code; ``stop()`` may be called from any thread."""

    def __init__(self, options: WorkerOptions) -> None:
        settings = get_settings()
        self.options = options
        self.settings = settings
        self.id = new_worker_id()
        self.held = Held(options.ledger)
        self.counts = Counts()
        self._poke = Poke()
        self._ending = threading.Event()
        self._groups = [Slots(queues, size, options.ledger) for queues, size in options.groups]
        self._session = open_session(self._engine_config())
        missable = max(settings.lease / 3, SHORTEST_STANDSTILL)
        self.pulses = {
            "loop": Pulse(missable, self._session),
            "renewer": Pulse(missable),
        }
        self._maintenance_pulse = Pulse(MAINTENANCE_STANDSTILL)
        self._lacks_maintenance = False
        self._isolation = Isolation(self._session.clock)
        self._upkeep = self._maintenance()
        executor = Executor(
            self._session.clock.milliseconds, lambda: self._ending.wait(1.0), isolate=self._isolation.run
        )
        self._dispatcher = Dispatcher(executor)
        self.loop = self._engine_loop()

    def _engine_loop(self) -> Loop:
        settings, options = self.settings, self.options
        return Loop(
            session=self._session,
            groups=self._groups,
            held=self.held,
            counts=self.counts,
            dispatcher=self._dispatcher,
            sleeper=Sleeper(self._session, settings.poll_every, settings.poll_every_unproven),
            poke=self._poke,
            busy_rows=BusyRows(self._session, settings.lease),
            pulse=self.pulses["loop"],
            recycling=Recycling(options.max_jobs, options.max_memory),
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
        with self._obeying():
            self._serve()
            self._tell_supervisor(ended=self.loop.retiring or "it was told to, or there was nothing left to do")
        self._poke.close()
        if self.loop.overruns.stuck:
            return exit_codes.STUCK
        return exit_codes.STANDSTILL if self._lacks_maintenance else exit_codes.DONE

    def _obeying(self) -> AbstractContextManager[None]:
        if self.options.supervised is not None:
            return self.options.supervised.obeying(self.id, self.stop)
        return stop_on_signals(self.stop)

    def _serve(self) -> None:
        renewer = Renewer(
            lambda: open_session(replace(self._engine_config(), renews=True)),
            self.held,
            self.settings.renewal_pause,
            self.pulses["renewer"],
        )
        watchdog = Watchdog(self.pulses, self._look_around)
        renewer.start()
        self._upkeep.start()
        watchdog.start()
        logger.info("%s.", self.describe())
        notify_systemd("READY=1")
        try:
            self.loop.run()
        finally:
            notify_systemd("STOPPING=1")
            self._ending.set()
            patience = HASTE_SECONDS if self.loop.left_behind else PATIENCE_SECONDS
            watchdog.stop(patience)
            renewer.stop(patience)
            self._upkeep.stop(patience)
            self._isolation.close()
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

    def vitals(self) -> Vitals:
        """How this process is. Asked by other threads."""
        pulses = self.pulses.values()
        return Vitals(
            worker=self.id,
            live=not (any(pulse.stopped for pulse in pulses) or self._maintenance_stands_still),
            ready=not (self.loop.in_outage or any(pulse.slow for pulse in pulses)),
            running=len(self.held),
        )

    @property
    def _maintenance_stands_still(self) -> bool:
        return self._maintenance_pulse.stopped or self._upkeep.died

    def _look_around(self) -> None:
        """Called by the watchdog, each turn in which neither loop nor renewer stands still."""
        self._maintenance_pulse.feel()
        if self._maintenance_stands_still and not self._lacks_maintenance:
            self._end_for_lack_of_maintenance()
        notify_systemd("WATCHDOG=1")
        self._tell_supervisor(**self.vitals().as_dict(), retiring=self.loop.retiring)

    def _end_for_lack_of_maintenance(self) -> None:
        """Running jobs do not need maintenance, so they have the time that they have at any stop."""
        self._lacks_maintenance = True
        logger.critical("Maintenance stands still: nothing is staged, rescued or fired here. Ending this process.")
        self.loop.end()

    def _tell_supervisor(self, **message: object) -> None:
        if self.options.supervised is not None:
            self.options.supervised.tell(**message)

    def describe(self) -> str:
        """One line about who this is and what it serves."""
        served = ", ".join(f"{'+'.join(group.queues)} ({group.size} slots)" for group in self._groups)
        return f"Worker {self.id} serves {served}"

    def _maintenance(self) -> Upkeep:
        return Upkeep(
            self.settings,
            self._engine_config(),
            own=[Reporter(self._row(), self.settings.database, self.held.__len__, self.counts)],
            judge=lost,
            counts=self.counts,
            poke=self._poke.poke,
            beat=self._maintenance_pulse.beat,
            shared=self.options.maintenance,
        )

    def _row(self) -> Worker:
        return worker_row(self.id, [{"queues": list(group.queues), "slots": group.size} for group in self._groups])
