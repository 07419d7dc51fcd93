"""What an engine is told instead of reading settings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

SHORTEST_PATIENCE = timedelta(seconds=5)
SHORTEST_SILENCE = timedelta(seconds=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """``worker`` names the process in the rows it leases; new at each process start. ``build``: fingerprint of what it
    can fire, see operations/build.py. ``renews``: the session does nothing but renew leases.
    """

    alias: str
    worker: str = ""
    lease: timedelta = timedelta(seconds=60)
    unknown_patience: timedelta = timedelta(hours=24)
    listen: bool = True
    build: str = ""
    renews: bool = False

    @property
    def rescue_grace(self) -> timedelta:
        """Unbroken contact needed before a lapsed lease counts against its holder."""
        return self.lease / 3

    @property
    def longest_silence(self) -> timedelta:
        """After a longer one, or when the clock was set ahead by more, contact begins anew."""
        return max(self.rescue_grace, SHORTEST_SILENCE)

    @property
    def patience(self) -> timedelta:
        """How long a call waits for the database's answer before the connection counts as dead.

        A renewal begins when a third of the lease is over; so two that stay without an answer leave time for a third,
        and one also if the lease is short. What others ask may take the server longer than a quarter of a short one.
        """
        quarter = self.lease / 4
        return quarter if self.renews else max(quarter, SHORTEST_PATIENCE)

    @property
    def lock_patience(self) -> timedelta:
        """How long a renewal queues for a row that somebody has locked: shorter than ``patience``."""
        return self.lease / 5
