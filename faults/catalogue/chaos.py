"""Everything at once."""

from collections.abc import Callable

from django.db import connection

from faults import journal
from faults.arena import Arena
from faults.catalogue.server import terminate_one
from faults.fault import fault

MINUTES = 5


@fault("postgresql", "sqlite")
def chaos(arena: Arena) -> None:
    """A random mix for five minutes: kills, freezes, stops, ended sessions, restarts of the server."""
    arena.start_workers(4)
    arena.start_load()
    end = journal.now() + (5 if arena.short else 60 * MINUTES)
    while journal.now() < end:
        trouble = arena.random.choice(_troubles(arena))
        arena.notes.append(trouble.__name__.strip("_"))
        trouble(arena)
        arena.rounds_done += 1
    arena.wait_until_work_goes_on()


def _troubles(arena: Arena) -> list[Callable[[Arena], None]]:
    troubles: list[Callable[[Arena], None]] = [_kill, _freeze, _stop]
    if arena.database.vendor == "postgresql":
        troubles.append(_terminate)
    if arena.database.server is not None:
        troubles.append(_restart)
    return troubles


def _kill(arena: Arena) -> None:
    worker = arena.random.choice(arena.workers)
    arena.kill(worker.pid)
    arena.replace(worker)
    arena.pause(0.5)


def _freeze(arena: Arena) -> None:
    arena.freeze([arena.random.choice(arena.workers).pid], 1.3 * arena.lease)


def _stop(arena: Arena) -> None:
    worker = arena.random.choice(arena.workers)
    worker.ask_to_stop()
    arena.replace(worker)
    code = worker.popen.returncode
    arena.expect(code == 0, f"A worker that was stopped ended with exit code {code}:\n{worker.tail}")


def _terminate(arena: Arena) -> None:
    for _ in range(5):
        terminate_one(arena)
        arena.pause(0.1)


def _restart(arena: Arena) -> None:
    connection.close()
    arena.server.restart(arena.random.choice(["fast", "immediate"]))
