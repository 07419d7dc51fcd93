"""A PostgreSQL that goes away, or refuses. An outage alone must re-run nothing."""

import psycopg
from django.db import connection

from faults import journal
from faults.app.jobs import record
from faults.arena import Arena
from faults.fault import fault
from tests.postgres_server import StopMode


@fault("postgresql", needs_server=True)
def restart_fast(arena: Arena) -> None:
    """Restart PostgreSQL in fast mode under load, 20 times."""
    _restarts(arena, "fast")


@fault("postgresql", needs_server=True)
def restart_immediate(arena: Arena) -> None:
    """Restart PostgreSQL in immediate mode under load, as if it had crashed, 20 times."""
    _restarts(arena, "immediate")


def _restarts(arena: Arena, mode: StopMode) -> None:
    arena.start_workers(3)
    arena.start_load()
    arena.order(record, seconds=arena.lease)
    for _ in arena.rounds(short=1, long=20):
        arena.wait_until_work_goes_on()
        arena.pause(arena.random.uniform(0, 0.5))
        connection.close()
        arena.server.restart(mode)
        arena.wait_until_recovered()


@fault("postgresql", needs_server=True)
def stopped_for_three_leases(arena: Arena) -> None:
    """Stop PostgreSQL for three leases while jobs run."""
    arena.start_workers(3)
    arena.start_load()
    for _ in arena.rounds(short=1, long=3):
        arena.order_long_runs(10, seconds=2 * arena.lease)
        connection.close()
        arena.server.halt("fast")
        arena.pause(3 * arena.lease)
        arena.server.launch()
        arena.wait_until_recovered()


@fault("postgresql")
def terminated_sessions(arena: Arena) -> None:
    """pg_terminate_backend of sessions at random for a minute: those of workers, handlers and the enqueuer."""
    arena.start_workers(3)
    arena.start_load()
    end = journal.now() + (2 if arena.short else 60)
    while journal.now() < end:
        arena.rounds_done += terminate_one(arena)
        arena.pause(0.1)
    arena.wait_until_work_goes_on()


def terminate_one(arena: Arena) -> int:
    """Any session of the database but this process's."""
    name = connection.settings_dict["NAME"]
    with psycopg.connect(arena.database.admin_url, autocommit=True) as admin:
        rows = admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'", [name]
        ).fetchall()
        if not rows:
            return 0
        admin.execute("SELECT pg_terminate_backend(%s)", arena.random.choice(rows))
    return 1


@fault("postgresql", needs_server=True)
def read_only(arena: Arena) -> None:
    """Every transaction is read-only for a lease and a half, as after a failover to a standby."""
    arena.start_workers(3)
    arena.start_load()
    arena.order(record, seconds=arena.lease)
    arena.afterwards.callback(_set_read_only, arena, "off")
    for _ in arena.rounds(short=1, long=10):
        _set_read_only(arena, "on")
        arena.pause(1.5 * arena.lease)
        _set_read_only(arena, "off")
        arena.wait_until_recovered()


def _set_read_only(arena: Arena, value: str) -> None:
    arena.database.administer("ALTER SYSTEM SET default_transaction_read_only = {value}", value=value)
    arena.database.administer("SELECT pg_reload_conf()")


@fault("postgresql")
def refused_connections(arena: Arena) -> None:
    """The database ends all sessions and takes no new ones for a lease and a half."""
    name = connection.settings_dict["NAME"]
    arena.start_workers(3)
    arena.start_load()
    arena.order(record, seconds=arena.lease)
    arena.afterwards.callback(arena.database.administer, "ALTER DATABASE {name} ALLOW_CONNECTIONS true", name=name)
    for _ in arena.rounds(short=1, long=10):
        connection.close()
        arena.database.administer("ALTER DATABASE {name} ALLOW_CONNECTIONS false", name=name)
        while terminate_one(arena):
            pass
        arena.pause(1.5 * arena.lease)
        arena.database.administer("ALTER DATABASE {name} ALLOW_CONNECTIONS true", name=name)
        arena.wait_until_recovered()
