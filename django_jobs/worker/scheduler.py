"""A process that runs maintenance and no jobs: fires schedules, stages, rescues, keeps the tables in order, watches."""

from __future__ import annotations

import threading

from django_jobs.conf import get_settings
from django_jobs.engines.config import EngineConfig
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.maintenance.reporter import Reporter
from django_jobs.maintenance.upkeep import Upkeep

from .endings import lost
from .pulse import MAINTENANCE_STANDSTILL, Pulse, Watchdog
from .registration import new_worker_id, worker_row
from .signals import stop_on_signals
from .systemd import notify_systemd
from .vitals import Vitals

logger = get_logger("django_jobs.worker")

PATIENCE_SECONDS = 5.0


class SchedulerProcess:
    """``run()`` returns after ``stop()``, which may be called from any thread."""

    def __init__(self) -> None:
        self.settings = get_settings()
        self.id = new_worker_id()
        self._stopped = threading.Event()
        self._pulse = Pulse(MAINTENANCE_STANDSTILL)
        self._upkeep = self._maintenance()

    def stop(self) -> None:
        """Ask to end: the service that is at work finishes its turn."""
        self._stopped.set()

    def run(self) -> None:
        watchdog = Watchdog({"maintenance": self._pulse}, self._tell)
        with stop_on_signals(self.stop):
            logger.info("Scheduler %s.", self.id)
            self._upkeep.start()
            watchdog.start()
            notify_systemd("READY=1")
            self._stopped.wait()
            notify_systemd("STOPPING=1")
            watchdog.stop(PATIENCE_SECONDS)
            self._upkeep.stop(PATIENCE_SECONDS)

    def vitals(self) -> Vitals:
        """How this process is. Asked by other threads."""
        live = not (self._pulse.stopped or self._upkeep.died)
        return Vitals(worker=self.id, live=live, ready=not self._upkeep.in_outage, running=0)

    def _tell(self) -> None:
        if not self._upkeep.died:
            notify_systemd("WATCHDOG=1")

    def _maintenance(self) -> Upkeep:
        config = EngineConfig(alias=self.settings.database, worker=self.id, lease=self.settings.lease)
        counts = Counts()
        reporter = Reporter(worker_row(self.id, []), self.settings.database, lambda: 0, counts)
        return Upkeep(
            self.settings,
            config,
            own=[reporter],
            judge=lost,
            counts=counts,
            poke=lambda: None,
            beat=self._pulse.beat,
        )
