"""Handlers that are a fault themselves. Their neighbours must not notice."""

from django_jobs.models import DeadJob, JobHistory
from django_jobs.worker import exit_codes
from django_jobs.worker.recycling import FEWEST_RUNS
from faults.app import jobs
from faults.app.models import Effect
from faults.app.newer_jobs import segfault_isolated
from faults.arena import Arena
from faults.fault import fault
from faults.processes import SupervisorProcess


@fault("postgresql", "sqlite")
def segfaults(arena: Arena) -> None:
    """Handlers that segfault, in the worker and in a process of their own. They end as dead after two attempts."""
    arena.start_supervisor(2)
    arena.start_load()
    ordered = []
    for _ in arena.rounds(short=1, long=20):
        ordered += [arena.order(jobs.segfault), arena.order(segfault_isolated)]
        arena.wait_until_ended(*ordered)
    arena.expect(_dead(ordered) == len(ordered), f"{_dead(ordered)} of {len(ordered)} segfaults are dead jobs.")


@fault("postgresql", "sqlite")
def leaks(arena: Arena) -> None:
    """Handlers that leak memory under --max-memory: processes are replaced, and no run is lost."""
    supervisor = arena.start_supervisor(1, "--max-memory=140")
    arena.start_load()
    before = supervisor.worker_pids()
    for _ in arena.rounds(short=1, long=5):
        # What a process needs for its first jobs is not taken for a leak.
        arena.wait_until_ended(*(arena.order(jobs.record, seconds=0) for _ in range(2 * FEWEST_RUNS)))
        leaking = [arena.order(jobs.leak, megabytes=20) for _ in range(6)]
        _wait_for_replacement(arena, supervisor, before)
        arena.wait_until_ended(*leaking)
        before = supervisor.worker_pids() | before


@fault("postgresql", "sqlite")
def hangs(arena: Arena) -> None:
    """Handlers that never return, with a time-out: buried, and the process with the stuck threads is replaced."""
    supervisor = arena.start_supervisor(2)
    arena.exit_codes = {exit_codes.DONE, exit_codes.STUCK}  # told to stop before the last stuck process was replaced
    arena.start_load()
    ordered = []
    for _ in arena.rounds(short=1, long=10):
        before = supervisor.worker_pids()
        ordered.append(arena.order(jobs.hang))
        arena.wait_until_ended(*ordered)
        _wait_for_replacement(arena, supervisor, before)
    arena.expect(_dead(ordered, reason="timeout") == len(ordered), "Not every one is dead by its time-out.")


@fault("postgresql", "sqlite")
def blocked_loops(arena: Arena) -> None:
    """An async handler blocks the event loop of its process for four leases."""
    arena.start_workers(2)
    arena.start_load()
    for _ in arena.rounds(short=1, long=5):
        blocking = arena.order(jobs.block_loop, seconds=4 * arena.lease)
        arena.wait_until_ended(blocking)
        one = JobHistory.objects.get(job_id=blocking)
        arena.expect(one.attempts == 1, f"The blocking job has {one.attempts} attempts.")


@fault("postgresql", "sqlite")
def careless(arena: Arena) -> None:
    """Handlers that close their connection, leave a transaction open or aborted, or swallow an IntegrityError."""
    arena.start_workers(2)
    arena.start_load()
    wrong, fine = [], []
    for _ in arena.rounds(short=2, long=50):
        wrong += [arena.order(handle) for handle in (jobs.leave_open, jobs.leave_aborted, jobs.swallow)]
        fine.append(arena.order(jobs.close_connection))
    arena.wait_until_ended(*wrong, *fine)
    arena.expect(_dead(wrong) == len(wrong), f"{_dead(wrong)} of {len(wrong)} careless jobs are dead.")
    left = Effect.objects.filter(job_id__in=wrong).count()
    arena.expect(not left, f"{left} effects of transactions that did not end stand.")
    arena.expect(_dead(fine) == 0, "A closed connection buried a job.")


def _wait_for_replacement(arena: Arena, supervisor: SupervisorProcess, before: set[int]) -> None:
    arena.wait(lambda: supervisor.worker_pids() - before, "a process to be replaced")


def _dead(job_ids: list[str], **more: object) -> int:
    return DeadJob.objects.filter(pk__in=job_ids, **more).count()
