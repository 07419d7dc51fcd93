"""Tells systemd how this process is (``Type=notify``, ``WatchdogSec=``). Does nothing elsewhere.

See sd_notify(3).
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify_systemd(state: str) -> None:
    """``READY=1``, ``WATCHDOG=1`` or ``STOPPING=1``."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    # A name that begins with @ is in the abstract namespace.
    address = "\0" + address[1:] if address[0] == "@" else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        notifier.sendto(state.encode(), address)
