"""Growing pauses while the jobs database does not answer; said once in the log, and once when it is over."""

from __future__ import annotations

from math import inf

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.logs import get_logger

logger = get_logger("django_jobs.worker")

FIRST, LAST = 0.1, 5.0
# A claim that was given up on may commit late, when the server's disk or its standby goes on.
LOOKS_AFTERWARDS = (1.0, 5.0, 20.0)


class Backoff:
    def __init__(self) -> None:
        self._pause = 0.0
        self._until = 0.0
        self._last = ""
        self._looks: list[float] = []

    @property
    def active(self) -> bool:
        return self._pause > 0

    @property
    def left(self) -> float:
        """Seconds until the next attempt; 0 when it is due."""
        return max(self._until - clock.monotonic(), 0.0) if self.active else 0.0

    @property
    def next_look(self) -> float:
        """Seconds until what the outage left behind is to be looked for again; infinite when it is not."""
        return max(self._looks[0] - clock.monotonic(), 0.0) if self._looks else inf

    def looks_again(self) -> bool:
        """Is it time for that? True once for each of LOOKS_AFTERWARDS."""
        if self.next_look > 0:
            return False
        del self._looks[0]
        return True

    def failed(self, error: EngineUnavailable) -> None:
        if str(error) != self._last:
            logger.error("The jobs database is not available; jobs go on running, and this is tried again: %s", error)
            self._last = str(error)
        self._looks.clear()
        self._pause = min(max(self._pause * 2, FIRST), LAST)
        self._until = clock.monotonic() + self._pause

    def succeeded(self) -> bool:
        """True if this ends an outage."""
        if not self.active:
            return False
        logger.warning("The jobs database is available again.")
        self._pause = 0.0
        self._last = ""
        self._looks = [clock.monotonic() + seconds for seconds in LOOKS_AFTERWARDS]
        return True
