"""Keeps the leases of this process alive, from a thread and a connection of its own.

So neither a blocked event loop, nor busy handlers, nor a slow settling delays a renewal by more than the
interpreter's switching. Renewals begin at a fixed rate, however long each takes. One that fails is tried again
each second: with the default third of a lease as its pause, a lease survives two renewals that did not come
through. One that met a row which somebody else has locked queued for it, and queues again at once: a rescuer is not
to find the row before it when the lock goes. An error never ends the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable, Session
from django_jobs.engines.values import Renewal
from django_jobs.logs import get_logger

from .held import Held
from .pulse import Pulse
from .running import Run

logger = get_logger("django_jobs.worker")

RETRY_SECONDS = 1.0


class Renewer:
    """``open_session`` is called in the renewer's own thread."""

    def __init__(self, open_session: Callable[[], Session], held: Held, pause: timedelta, pulse: Pulse) -> None:
        self._open_session = open_session
        self._held = held
        self._pause = pause.total_seconds()
        self._pulse = pulse
        self._retry_pause = min(RETRY_SECONDS, self._pause / 4)
        self._trouble = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="django_jobs renewer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stop.set()
        self._thread.join(timeout)

    def _serve(self) -> None:
        session = self._open_session()
        self._pulse.session = session
        # A server that has no connection left when the first lease is to be renewed must not cost it.
        with suppress(EngineUnavailable):
            session.my_leases()
        wait = self._pause
        while not self._rested(wait):
            began = clock.monotonic()
            wait = max(began + self._tried(session) - clock.monotonic(), 0.0)
        session.close()

    def _rested(self, seconds: float) -> bool:
        """True: this is the end."""
        self._pulse.beat(seconds)
        ended = self._stop.wait(seconds)
        self._pulse.beat()
        return ended

    def _tried(self, session: Session) -> float:
        """How many seconds after its beginning the next one is to begin."""
        try:
            renewal = self.run_once(session)
        except EngineUnavailable as error:
            self._note_trouble(str(error))
            return self._retry_pause
        except Exception:
            logger.exception("Leases could not be renewed; trying again in %.2g s.", self._retry_pause)
            return self._retry_pause
        self._note_trouble("")
        return 0.0 if renewal is not None and renewal.busy else self._pause

    def _note_trouble(self, trouble: str) -> None:
        """Said once, and once when it is over."""
        if trouble and trouble != self._trouble:
            logger.warning("Leases could not be renewed; trying again each %.2g s: %s", self._retry_pause, trouble)
        elif self._trouble and not trouble:
            logger.warning("Leases are renewed again.")
        self._trouble = trouble

    def run_once(self, session: Session) -> Renewal | None:
        """Renew what is held now. Runs learn here that they are cancelled or lost."""
        runs: dict[UUID, Run] = {}
        for _, run in sorted(self._held.snapshot(), key=lambda held: held[1].job.token):
            if displaced := runs.get(run.job.id):
                _tell_lost(displaced, self._held)
            runs[run.job.id] = run
        if not runs:
            return None
        renewal = session.renew({job_id: run.job.token for job_id, run in runs.items()})
        for job_id in renewal.cancelled:
            runs[job_id].cancelled = True
        for job_id in renewal.lost:
            _tell_lost(runs[job_id], self._held)
        return renewal


def _tell_lost(run: Run, held: Held) -> None:
    """Unless it was settled between our look and the renewal, its lease is somebody else's by now."""
    if run in held and not (run.lost or run.ended or run.settled):
        run.lost = True
        logger.error("Job %s (%s), attempt %d: the lease is lost.", run.job.id, run.job.type, run.job.attempt)
        run.ask_to_stop("lease")
