"""The order in which jobs became pending: microseconds since 1970, strictly increasing within a process."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta

from django_jobs import clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_lock = threading.Lock()
_last = 0


def take_places(count: int) -> range:
    """``count`` consecutive places, above every one that this process took before."""
    global _last
    with _lock:
        first = max((clock.now() - _EPOCH) // _MICROSECOND, _last + 1)
        _last = first + count - 1 if count else _last
    return range(first, first + count)


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
