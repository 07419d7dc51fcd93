"""A wrong wall clock for one process: everything of Python, Django and the package that tells the date is shifted.

The monotonic clock stays right, as on a machine whose date is wrong.
"""

import time
from datetime import datetime, timedelta, tzinfo

from django.utils import timezone

from django_jobs import clock


def shift_clocks(seconds: float) -> None:
    if not seconds:
        return
    shift = timedelta(seconds=seconds)
    right_time, right_time_ns = time.time, time.time_ns

    class ShiftedDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # plain, as everybody stores it
            return datetime.now(tz) + shift

    time.time = lambda: right_time() + seconds
    time.time_ns = lambda: right_time_ns() + int(seconds * 1e9)
    for module in (clock, timezone):
        vars(module)["datetime"] = ShiftedDatetime
