"""How far the end of the process has come: retiring or asked, async runs cancelled, the rest handed back."""

from __future__ import annotations

from enum import Enum

from django_jobs import clock

CANCEL_SECONDS = 0.5
LAST_WORDS_SECONDS = 5.0


class Step(Enum):
    BEGIN = "claim nothing more and hand unstarted jobs back"
    CANCEL = "cancel async runs"
    HAND_BACK = "hand back what still runs"


class Stopping:
    """The first ``ask`` waits for running jobs up to ``timeout`` seconds; the second does not wait. A process that must
    end for a reason of its own waits as after the first, which may still come. Who only retires waits for as long
    as they take; ``retiring`` is why, empty if it does not.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._asked = 0
        self._must_end = False
        self.retiring = ""
        self._begun = False
        self._since: float | None = None
        self._cancelled_at: float | None = None
        self._handed_back_at: float | None = None

    def ask(self) -> None:
        """Safe in a signal handler."""
        self._asked += 1

    def end(self) -> None:
        """For a reason of its own, from any thread."""
        self._must_end = True

    def retire(self, reason: str) -> None:
        self.retiring = reason

    @property
    def asked(self) -> bool:
        return self._must_end or self._asked > 0

    @property
    def begun(self) -> bool:
        return self._begun

    @property
    def handed_back(self) -> bool:
        return self._handed_back_at is not None

    @property
    def out_of_time(self) -> bool:
        """Is it no use to wait any longer for the hand-back to be written?"""
        return self._handed_back_at is not None and clock.monotonic() - self._handed_back_at > LAST_WORDS_SECONDS

    def next_step(self, *, cancellable: bool) -> Step | None:
        """What is due now; each step once. ``cancellable``: async runs are still going on."""
        now = clock.monotonic()
        if not (self.asked or self.retiring) or self.handed_back:
            return None
        if self.asked and self._since is None:
            self._since = now
        if not self._begun:
            self._begun = True
            return Step.BEGIN
        if self._since is None:
            return None
        if self._cancelled_at is None:
            if self._asked < 2 and now - self._since < self._timeout:
                return None
            self._cancelled_at = now
            return Step.CANCEL
        if cancellable and now - self._cancelled_at < CANCEL_SECONDS:
            return None
        self._handed_back_at = now
        return Step.HAND_BACK
