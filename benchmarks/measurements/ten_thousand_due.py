"""10,000 schedules due at one instant: how long until a single scheduler has enqueued all, and do urgent jobs wait?

The scheduler is the maintenance of a worker that serves another queue meanwhile: urgent jobs 50 ms apart, timed from
their commit to the start of their handler.
"""

import tempfile
import time
from pathlib import Path

from benchmarks import children, schedules
from benchmarks.app.jobs import stamp
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from benchmarks.stamps import now_ns, read_stamps
from django_jobs.models import Schedule, ScheduleSlot
from tests.waiting import wait_for

APART = 0.05
START = 12


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    count = scale.of(10_000, 1_000)
    schedules.forget()
    due = schedules.whole_second(START)
    schedules.make(count, due, cron="0 8 * * *")
    urgent = urgent_latencies(count)
    seconds = max(schedules.delays()) / 1000
    return [
        Figure(what=f"{count:,} due at once", value=seconds, unit="s", goals=(Goal(of="value", most=5),)),
        Figure(what="jobs a second", value=count / seconds, unit="/s"),
        *schedules.delay_figures("urgent beside", urgent, {"p99": (Goal(of="value", most=2000),)}),
    ]


def urgent_latencies(count: int) -> list[float]:
    """Milliseconds, of the jobs enqueued from the slot until all schedules had fired."""
    committed: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        stamps = Path(folder) / "stamps"
        with children.worker("--queues", "other", stamps=stamps):
            wait_for(ScheduleSlot.objects.exists, timeout=60, message="the first slot")
            while Schedule.objects.filter(last_slot=None).exists() or len(committed) < 20:
                number = len(committed)
                stamp.using(queue="other").enqueue(number=number)
                committed[number] = now_ns()
                time.sleep(APART)
            wait_for(lambda: len(read_stamps(stamps)) >= len(committed), timeout=60, message="the urgent jobs")
            started = read_stamps(stamps)
    assert ScheduleSlot.objects.filter(outcome="fired").count() == count
    return [(started[number] - committed[number]) / 1e6 for number in committed]
