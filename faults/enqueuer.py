"""``python -m faults.enqueuer RATE SEED TYPES``: commit jobs with their business data, until SIGTERM.

What the database refuses is given up, as a web request would be.
"""

import random
import signal
import sys
import threading
import time

import django
from django.db import connection

DURATIONS = (0.0, 0.01, 0.05, 0.3)
SHORT_DURATIONS = (0.0, 0.01)
REST_AFTER_REFUSAL = 0.1


def main(rate: float, seed: int, types: str) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    django.setup()
    from django_jobs.handle import JobHandle
    from django_jobs.registry import registry
    from faults.ordering import place_order

    handles = [JobHandle(registry.get(name)) for name in types.split(",")]
    # There, the transaction of such a job keeps all other writers out.
    is_sqlite = connection.vendor == "sqlite"
    choose = random.Random(seed)
    due = time.monotonic()
    while not stop.is_set():
        handle = choose.choice(handles)
        durations = SHORT_DURATIONS if handle.job_type.atomic and is_sqlite else DURATIONS
        if place_order(handle, seconds=choose.choice(durations)) is None:
            stop.wait(REST_AFTER_REFUSAL)
        due = max(due + 1 / rate, time.monotonic() - 1)
        stop.wait(max(due - time.monotonic(), 0))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
