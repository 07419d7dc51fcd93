"""Messages between two of our processes: one JSON object a line, over a socket pair.

Plain text both ways, so that nothing one side sends can hang, crash or command the other: an unknown message is
ignored by whoever reads it.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from django_jobs.polling import wait_readable

SEND_SECONDS = 5.0
PIECE = 65536

Message = dict[str, Any]


class Channel:
    """One end. ``open`` is False once the other side is gone. One thread sends at a time, one receives.

    ``patience``: seconds that a message may wait for the other side to read. None: for ever.
    """

    def __init__(self, end: socket.socket, patience: float | None = SEND_SECONDS) -> None:
        self._socket = end
        self._socket.settimeout(patience)
        self._unread = b""
        self.open = True

    @classmethod
    def inherited(cls, fileno: int, patience: float | None = SEND_SECONDS) -> Channel:
        """The end that this process was started with. What it starts itself does not inherit it."""
        end = socket.socket(fileno=fileno)
        end.set_inheritable(False)
        return cls(end, patience)

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """An end for this process, and the other one to be passed on."""
        ours, theirs = socket.socketpair()
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, **message: Any) -> bool:
        """False if the other side is gone, or does not read."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return False
        return True

    def receive(self, timeout: float | None) -> list[Message]:
        """What has arrived, after waiting for something up to ``timeout`` seconds. None waits for ever."""
        if not wait_readable(self.fileno(), timeout=timeout):
            return []
        try:
            piece = self._socket.recv(PIECE)
        except OSError:
            piece = b""
        if not piece:
            self.open = False
        *lines, self._unread = (self._unread + piece).split(b"\n")
        return [message for line in lines if (message := _decoded(line)) is not None]

    def close(self) -> None:
        self.open = False
        self._socket.close()


def _decoded(line: bytes) -> Message | None:
    """A handler may write to any descriptor of its process: what is no message is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
