"""A wrong wall clock for one process: everything of Python, Django and the package that tells the date is shifted.

The monotonic clock stays right, as on a machine whose date is wrong.
"""

import time
from datetime import datetime, timedelta

from django.utils import timezone

from django_jobs import clock


def shift_clocks(seconds: float) -> None:
    if not seconds:
        return
    shift = timedelta(seconds=seconds)
    right_time, right_time_ns = time.time, time.time_ns

    class ShiftedDatetime(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + shift

    time.time = lambda: right_time() + seconds
    time.time_ns = lambda: right_time_ns() + int(seconds * 1e9)
    clock.datetime = ShiftedDatetime
    timezone.datetime = ShiftedDatetime
