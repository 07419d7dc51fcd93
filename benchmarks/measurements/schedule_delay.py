"""From a slot to the enqueueing of its job: 20 schedules of each second, one scheduler, then four.

By the database's clock: when the statement that records the slots began. What a commit costs is in the first line of
the output.
"""

from contextlib import ExitStack

from benchmarks import schedules
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from django_jobs.models import ScheduleSlot
from tests.waiting import wait_for

SCHEDULES = 20
GOALS = {"p50": (Goal(of="value", most=100),), "p99": (Goal(of="value", most=1000),)}


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    seconds = scale.of(60, 5)
    return [
        *schedules.delay_figures(
            "one scheduler", delays_with(1, seconds), GOALS | {"p99": (Goal(of="value", most=100),)}
        ),
        *schedules.delay_figures("four schedulers", delays_with(4, seconds), GOALS),
    ]


def delays_with(schedulers: int, seconds: int) -> list[float]:
    schedules.forget()
    schedules.make(SCHEDULES, schedules.whole_second(15), every=schedules.SECOND)
    with ExitStack() as stack:
        for _ in range(schedulers):
            stack.enter_context(schedules.scheduler())
        wait_for(
            lambda: ScheduleSlot.objects.count() >= SCHEDULES * seconds, timeout=seconds * 3 + 60, message="the slots"
        )
    return schedules.delays()
