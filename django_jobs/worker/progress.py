"""Writes what running handlers report as their progress, every two seconds at most."""

from __future__ import annotations

from contextlib import suppress

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable, Session

from .held import Held

EVERY_SECONDS = 2.0


class ProgressWriter:
    """Progress is for people to look at: what cannot be written now is left out."""

    def __init__(self, session: Session, held: Held) -> None:
        self._session = session
        self._held = held
        self._next = 0.0

    def write(self) -> None:
        now = clock.monotonic()
        if now < self._next or not len(self._held):
            return
        self._next = now + EVERY_SECONDS
        fresh = {}
        for _, run in self._held.snapshot():
            progress = run.progress
            if progress is not run.shown and not run.lost:
                run.shown = progress
                fresh[run.job.id] = (run.job.token, progress)
        if fresh:
            with suppress(EngineUnavailable):
                self._session.show_progress(fresh)
