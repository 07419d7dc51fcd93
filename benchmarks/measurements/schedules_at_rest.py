"""What 10,000 schedules cost while none is due: one scheduler over 30 seconds, against the same without schedules.

Statements are counted in the server's log, if the server is the benchmark's own; processor time of the scheduler is
read from /proc.
"""

import time
from datetime import timedelta

from benchmarks import schedules
from benchmarks.databases import Databases
from benchmarks.figures import Figure
from benchmarks.measurements.idle_workers import counted
from benchmarks.rounds import Scale
from benchmarks.tables import execute
from django_jobs.models import Worker
from tests.waiting import wait_for

SCHEDULES = 10_000


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    if databases.server:
        execute(f"ALTER DATABASE {databases.name} SET log_statement = 'all'")
    without, beside = (spent(count, scale, databases) for count in (0, SCHEDULES))
    if databases.server:
        execute(f"ALTER DATABASE {databases.name} RESET log_statement")
    units = {"transactions": "/s", "cpu": "s CPU in 30 s"} | ({"statements": "/s"} if databases.server else {})
    return [
        Figure(what=name, value=beside[name], unit=unit, against="no schedules", compared=max(without[name], 0.001))
        for name, unit in units.items()
    ]


def spent(count: int, scale: Scale, databases: Databases) -> dict[str, float]:
    seconds = scale.of(30, 5)
    schedules.forget()
    schedules.make(count, schedules.database_now() + timedelta(days=1), cron="0 8 * * *")
    execute("VACUUM ANALYZE django_jobs_schedule")
    known = Worker.objects.count()
    with schedules.scheduler() as process:
        wait_for(lambda: Worker.objects.count() > known, timeout=60, message="the scheduler")
        time.sleep(scale.of(25, 5))
        before = counted(databases, [process])
        time.sleep(seconds)
        after = counted(databases, [process])
    rates = {name: (after[name] - before[name]) / seconds for name in before}
    return rates | {"cpu": rates["cpu"] * 30}
