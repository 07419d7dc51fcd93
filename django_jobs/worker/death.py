"""How a child process ended, in words for people and for the errors of its jobs."""

from __future__ import annotations

import signal


def cause_of_death(returncode: int) -> str:
    """``SIGKILL``, or ``exit code 3``."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
