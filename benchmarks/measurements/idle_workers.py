"""What four idle workers ask of the database and of the processor, over 30 seconds without any job.

Transactions by the server's own count (``pg_stat_database``: whatever connects to the database counts, such as a
passing autovacuum). Statements are counted in the server's log, if the server is the benchmark's own; processor time
is read from /proc.
"""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg

from benchmarks import children
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from benchmarks.tables import empty, execute
from django_jobs.models import Worker
from tests.waiting import wait_for

WORKERS = 4
STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]*):")


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    seconds = scale.of(30, 5)
    rest = scale.of(25, 5)  # rescuing begins after a third of a lease
    empty()
    if databases.server:
        execute(f"ALTER DATABASE {databases.name} SET log_statement = 'all'")
    known = Worker.objects.count()
    with ExitStack() as stack:
        processes = [stack.enter_context(children.worker()) for _ in range(WORKERS)]
        wait_for(lambda: Worker.objects.count() == known + WORKERS, timeout=60, message="the workers")
        time.sleep(rest)
        before = counted(databases, processes)
        time.sleep(seconds)
        after = counted(databases, processes)
    if databases.server:
        execute(f"ALTER DATABASE {databases.name} RESET log_statement")
    spent = {name: after[name] - before[name] for name in before}
    return [
        Figure(
            what="transactions", value=spent["transactions"] / seconds, unit="/s", goals=(Goal(of="value", most=1.3),)
        ),
        *([Figure(what="statements", value=spent["statements"] / seconds, unit="/s")] if databases.server else []),
        Figure(what="CPU in 30 s", value=spent["cpu"] / seconds * 30, unit="s", goals=(Goal(of="value", most=0.2),)),
    ]


def counted(databases: Databases, processes: Sequence[subprocess.Popen[str]]) -> dict[str, float]:
    with psycopg.connect(databases.admin_url) as connection:
        row = connection.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = %s", [databases.name])
        (transactions,) = row.fetchone() or (0,)
    statements = len(STATEMENT.findall(databases.server.log)) if databases.server else 0
    return {
        "transactions": transactions,
        "statements": statements,
        "cpu": sum(cpu_seconds(process.pid) for process in processes),
    }


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
