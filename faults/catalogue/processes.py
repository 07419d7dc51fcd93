"""Processes that vanish or stand still."""

from functools import partial

from django_jobs.models import Job, Worker
from faults import journal
from faults.arena import Arena
from faults.fault import fault
from faults.processes import SupervisorProcess


@fault("postgresql", "sqlite")
def killed_workers(arena: Arena) -> None:
    """SIGKILL 3 of 5 workers under load, and again when work goes on. Their jobs wait for the leases to end."""
    arena.start_workers(5)
    arena.start_load()
    for _ in arena.rounds(short=1, long=20):
        arena.order_long_runs(5, seconds=arena.lease)
        doomed = arena.random.sample(arena.workers, 3)
        for worker in doomed:
            arena.kill(worker.pid)
        arena.replace(*doomed)
        arena.wait_until_work_goes_on()
        arena.pause(arena.lease if not arena.short else 0)


@fault("postgresql", "sqlite")
def killed_children(arena: Arena) -> None:
    """SIGKILL 3 of the 5 children of a supervisor under load, and again: it frees their jobs at once."""
    supervisor = arena.start_supervisor(5)
    arena.start_load()
    for _ in arena.rounds(short=1, long=20):
        arena.order_long_runs(5, seconds=arena.lease / 2)
        doomed = arena.random.sample(sorted(supervisor.worker_pids()), 3)
        names = list(Worker.objects.filter(pid__in=doomed, stopped_at=None).values_list("pk", flat=True))
        for pid in doomed:
            arena.kill(pid)
        killed_at = journal.now()
        arena.wait(partial(_have_no_lease, names), "the jobs of the dead to be free")
        seconds = journal.now() - killed_at
        arena.expect(seconds < arena.lease / 2, f"The jobs of the dead were free after {seconds:.1f} s only.")
        arena.wait_until_work_goes_on()
        arena.wait(partial(_has_five_without, supervisor, set(doomed)), "5 children again")
        arena.wait_until_nothing_is_suspect()


@fault("postgresql", "sqlite")
def frozen_workers(arena: Arena) -> None:
    """SIGSTOP 2 of 4 workers for two leases, then SIGCONT: what they write late must change nothing."""
    arena.start_workers(4)
    arena.start_load()
    for _ in arena.rounds(short=1, long=10):
        arena.freeze(arena.order_long_runs(4, seconds=arena.lease)[:2], 2 * arena.lease)
        arena.wait_until_work_goes_on()


def _have_no_lease(names: list[str]) -> bool:
    return not Job.objects.filter(locked_by__in=names, status="processing").exists()


def _has_five_without(supervisor: SupervisorProcess, gone: set[int]) -> bool:
    return len(supervisor.worker_pids() - gone) == 5
