"""PgQueuer: https://github.com/janbjorge/pgqueuer. Run as a module with a database's URL, it is a worker."""

import asyncio
import sys
from importlib.metadata import PackageNotFoundError, version

import psycopg

from benchmarks.stamps import now_ns, write_stamp

try:
    VERSION = version("pgqueuer")
except PackageNotFoundError:
    VERSION = ""


def enqueue(connection: psycopg.Connection, number: int) -> int:
    """As users of PgQueuer do who have a synchronous connection. Returns when it had committed, as ``now_ns`` does."""
    from pgqueuer.db import SyncPsycopgDriver
    from pgqueuer.queries import SyncQueries

    with connection.transaction():
        SyncQueries(SyncPsycopgDriver(connection)).enqueue("stamp", str(number).encode())
    return now_ns()


async def install(url: str) -> None:
    from pgqueuer.db import PsycopgDriver
    from pgqueuer.queries import Queries

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await Queries(PsycopgDriver(connection)).install()


async def work(url: str) -> None:
    from pgqueuer import PgQueuer
    from pgqueuer.db import PsycopgDriver
    from pgqueuer.models import Job

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        worker = PgQueuer(PsycopgDriver(connection))

        @worker.entrypoint("stamp")
        async def stamp(job: Job) -> None:
            write_stamp(int(job.payload or b""))

        await worker.run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
