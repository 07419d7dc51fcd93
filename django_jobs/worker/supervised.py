"""The child's side of a supervisor: it obeys, tells how it is, and ends when the supervisor is gone.

Orders come over the channel. A signal is heard too, but never counted: systemd and ``kill`` on a group send it to
the children as well as to the supervisor, who forwards it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django_jobs.logs import get_logger

from .channel import Channel, Message
from .reload import watch_modules
from .signals import STOP_SIGNALS, handling

logger = get_logger("django_jobs.worker")

GRACEFULLY, AT_ONCE = 1, 2


class Supervised:
    """``watch_since``: tell of modules that change after this instant (milliseconds since 1970); None: do not."""

    def __init__(self, channel: Channel, *, watch_since: int | None = None) -> None:
        self._channel = channel
        self._watch_since = watch_since
        self._stop: Callable[[], None] = lambda: None
        self._told = 0
        self._sending = threading.Lock()
        self._asking = threading.RLock()

    @contextmanager
    def obeying(self, worker: str, stop: Callable[[], None]) -> Iterator[None]:
        """For the time of the block, which is run in the main thread. ``stop`` is the worker's: once to end
        gracefully, a second time at once.
        """
        self._stop = stop
        self.tell(worker=worker)
        threading.Thread(target=self._listen, name="django_jobs orders", daemon=True).start()
        if self._watch_since is not None:
            watch_modules(self._note_change, self._watch_since)
        with handling({number: lambda *_: self._ask(GRACEFULLY) for number in STOP_SIGNALS}):
            yield

    def tell(self, **message: object) -> None:
        with self._sending:
            self._channel.send(**message)

    def _listen(self) -> None:
        while self._channel.open:
            for message in self._channel.receive(None):
                self._obey(message)
        logger.warning("The supervisor is gone.")
        self._ask(GRACEFULLY)

    def _obey(self, message: Message) -> None:
        if message.get("stop") in (GRACEFULLY, AT_ONCE):
            self._ask(message["stop"])

    def _ask(self, level: int) -> None:
        """Called by a signal handler and by the thread that listens; each level counts once."""
        with self._asking:
            while self._told < level:
                self._told += 1
                self._stop()

    def _note_change(self, path: str) -> None:
        self.tell(changed=path)
