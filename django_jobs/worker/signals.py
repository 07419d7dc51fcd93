"""Signals of a worker process. Handlers only set flags, and only the main thread may install them: elsewhere, as in a
test, nothing is installed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """The first signal stops gracefully, the second at once, the third ends the process without another word."""
    received = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 2:
            os._exit(128 + number)
        stop()

    with handling(dict.fromkeys(STOP_SIGNALS, handle)):
        yield


@contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
