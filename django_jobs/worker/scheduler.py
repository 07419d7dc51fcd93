"""A process that runs maintenance and no jobs: fires schedules, stages, rescues, keeps the tables in order, watches."""

from __future__ import annotations

import os
import socket
import threading

from django_jobs import __version__
from django_jobs.conf import get_settings
from django_jobs.engines.protocol import EngineConfig
from django_jobs.ids import uuid7
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.maintenance.reporter import Reporter
from django_jobs.maintenance.upkeep import Upkeep
from django_jobs.models import Worker

from .endings import lost
from .signals import stop_on_signals

logger = get_logger("django_jobs.worker")

PATIENCE_SECONDS = 5.0


class SchedulerProcess:
    """``run()`` returns after ``stop()``, which may be called from any thread."""

    def __init__(self) -> None:
        self.settings = get_settings()
        self.id = f"{socket.gethostname()[:40]}-{os.getpid()}-{uuid7().hex[-12:]}"
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Ask to end: the service that is at work finishes its turn."""
        self._stopped.set()

    def run(self) -> None:
        config = EngineConfig(alias=self.settings.database, worker=self.id, lease=self.settings.lease)
        counts = Counts()
        reporter = Reporter(self._row(), self.settings.database, lambda: 0, counts)
        upkeep = Upkeep(self.settings, config, own=[reporter], judge=lost, counts=counts, poke=lambda: None)
        with stop_on_signals(self.stop):
            logger.info("Scheduler %s.", self.id)
            upkeep.start()
            self._stopped.wait()
            upkeep.stop(PATIENCE_SECONDS)

    def _row(self) -> Worker:
        return Worker(id=self.id, host=socket.gethostname(), pid=os.getpid(), queues=[], version=__version__)
