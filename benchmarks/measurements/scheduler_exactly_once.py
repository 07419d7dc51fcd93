"""Six schedulers, 50 schedules of each second, kill -9 at random: is each slot of each second fired exactly once?

Every few seconds one of the six is killed, wherever it is, and replaced. At the end the record is counted: a slot
without a job, and a slot with two, would both show.
"""

import random
import time
from collections import Counter

from benchmarks import schedules
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from django_jobs.models import Job, ScheduleSlot
from tests.waiting import wait_for

SCHEDULERS, SCHEDULES = 6, 50
KILL_AFTER = (1.0, 4.0)
ALL = Goal(of="ratio", least=1, most=1)


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    seconds = scale.of(300, 12)
    schedules.forget()
    start = schedules.whole_second(scale.of(20, 12))
    schedules.make(
        SCHEDULES, start, every=schedules.SECOND, catch_up="all", end_at=start + schedules.SECOND * (seconds - 1)
    )
    kills = fire_and_kill(seconds * SCHEDULES, start)
    jobs = Counter(Job.objects.values_list("payload__number", "run_at"))
    expected = {(number, start + schedules.SECOND * second) for number in range(SCHEDULES) for second in range(seconds)}
    once = sum(jobs[slot] == 1 for slot in expected)
    surplus = sum(jobs.values()) - once
    return [
        Figure(
            what="slots fired exactly once", value=once, unit="", against="slots", compared=len(expected), goals=(ALL,)
        ),
        Figure(what="other jobs", value=surplus, unit="", goals=(Goal(of="value", most=0),)),
        Figure(what="processes killed", value=kills, unit=""),
        *schedules.delay_figures("slot to enqueue", schedules.delays(), {}),
    ]


def fire_and_kill(slots: int, start: object) -> int:
    running = [schedules.spawn_scheduler() for _ in range(SCHEDULERS)]
    dice, kills = random.Random(4), 0
    try:
        wait_for(ScheduleSlot.objects.exists, timeout=120, message=f"the first slot, at {start}")
        while ScheduleSlot.objects.filter(outcome="fired").count() < slots:
            time.sleep(dice.uniform(*KILL_AFTER))
            victim = running.pop(dice.randrange(SCHEDULERS))
            victim.kill()
            victim.communicate()
            running.append(schedules.spawn_scheduler())
            kills += 1
    finally:
        for process in running:
            process.kill()
            process.communicate()
    return kills
