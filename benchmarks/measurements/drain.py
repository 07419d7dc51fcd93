"""20,000 waiting jobs that do nothing, run by one ``runjobworker --drain`` process with 10 slots.

Compared with a bare psycopg script (``benchmarks/bare_drain.py``) that claims 200 of the same rows and settles
them into the same history table, over and over, on one connection and without Django. Rates are read from the
history both leave: the jobs finished after the first batch, over the time from the first batch's finish to the
last one's by the database's clock. So neither the start of a process nor its end counts. ``CPU`` is the worker
process's own processor time, less that of a drain with nothing to do, for each job.
"""

from collections.abc import Callable
from datetime import datetime
from statistics import median

from django.db.models import Count

from benchmarks import children
from benchmarks.app.jobs import noop, noop_async
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale, in_turns
from benchmarks.tables import empty, fill
from django_jobs.handle import JobHandle
from django_jobs.models import JobHistory

SLOTS = ("--concurrency", "10")
BARE = ("-m", "benchmarks.bare_drain")


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    jobs = scale.of(20_000, 2_000)
    rounds = scale.of(5, 1)
    return [*on_postgresql(jobs, rounds), *on_sqlite(jobs, rounds)]


def on_postgresql(jobs: int, rounds: int) -> list[Figure]:
    cpu: dict[str, list[float]] = {"def": [], "async def": [], "bare": []}
    sides = {
        "def": draining(noop, jobs, cpu["def"]),
        "async def": draining(noop_async, jobs, cpu["async def"]),
        "bare": finishing(noop, jobs, lambda: cpu["bare"].append(children.run(*BARE))),
    }
    turns = in_turns(sides, rounds, warm_up=False)
    figures = [
        Figure.comparing(
            name, turns[name], "jobs/s", "bare script", turns["bare"], Goal(least=0.2), Goal(of="value", least=10_000)
        )
        for name in ("def", "async def")
    ]
    empty()
    idle_worker = median(children.drain(*SLOTS) for _ in range(3))
    idle_script = median(children.run(*BARE) for _ in range(3))
    return [
        *figures,
        *(cpu_per_job(name, cpu[name], idle_worker, jobs) for name in ("def", "async def")),
        cpu_per_job("bare script", cpu["bare"], idle_script, jobs),
    ]


def on_sqlite(jobs: int, rounds: int) -> list[Figure]:
    cpu: list[float] = []
    handlers = {"def": noop, "async def": noop_async}
    sides = {name: draining(handler, jobs, cpu, "sqlite") for name, handler in handlers.items()}
    turns = in_turns(sides, rounds, warm_up=False)
    empty("sqlite")
    return [
        Figure.of(f"{name}, SQLite", turns[name], "jobs/s", Goal(of="value", least=3_000))
        for name in ("def", "async def")
    ]


def draining(handler: JobHandle, jobs: int, cpu: list[float], alias: str = "default") -> Callable[[], float]:
    return finishing(handler, jobs, lambda: cpu.append(children.drain(*SLOTS, alias=alias)), alias)


def finishing(handler: JobHandle, jobs: int, work: Callable[[], object], alias: str = "default") -> Callable[[], float]:
    def one() -> float:
        fill(handler, jobs, alias)
        work()
        return rate_in_history(jobs, alias)

    return one


def rate_in_history(jobs: int, alias: str) -> float:
    history = JobHistory.objects.using(alias)
    finished = history.filter(status="succeeded").values_list("finished_at").order_by("finished_at")
    batches: list[tuple[datetime, int]] = list(finished.annotate(size=Count("id")))
    total = sum(size for _, size in batches)
    if total != jobs or len(batches) < 3:
        raise RuntimeError(f"{total} of {jobs} jobs are in the history, in {len(batches)} batches.")
    (first, first_size), (last, _) = batches[0], batches[-1]
    return (total - first_size) / (last - first).total_seconds()


def cpu_per_job(name: str, seconds: list[float], idle: float, jobs: int) -> Figure:
    return Figure.of(f"CPU, {name}", [(used - idle) / jobs * 1e6 for used in seconds], "µs/job")
