"""A database file that somebody else writes to."""

import sqlite3

from django_jobs.models import Job
from faults.arena import Arena
from faults.fault import fault


@fault("sqlite")
def locked_database(arena: Arena) -> None:
    """Another program holds the write lock of the file for a lease and a half."""
    arena.start_workers(3)
    arena.start_load()
    path = arena.database.url.removeprefix("sqlite://")
    for _ in arena.rounds(short=1, long=10):
        job_id = arena.order_begun(seconds=arena.lease)
        somebody = sqlite3.connect(path, isolation_level=None, timeout=30)
        somebody.execute("BEGIN IMMEDIATE")
        arena.pause(1.5 * arena.lease)
        held = Job.objects.filter(pk=job_id, status="processing").exists()
        arena.expect(held, "No run was held while the file was locked.")
        somebody.execute("ROLLBACK")
        somebody.close()
        arena.wait_until_recovered()
