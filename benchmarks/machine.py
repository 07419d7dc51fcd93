"""Where the figures come from: without this line they mean nothing."""

import os
import platform
import time
from statistics import median
from typing import Any

import django
import psycopg
from django.db import connection

import django_jobs

COMMITS = 200


def facts() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "django": django.get_version(),
        "django_jobs": django_jobs.__version__,
        "psycopg": f"{psycopg.__version__} ({psycopg.pq.__impl__})",
        "postgresql": _one("SHOW server_version").partition(" ")[0],
        "durability": {name: _one(f"SHOW {name}") for name in ("fsync", "full_page_writes", "synchronous_commit")},
        "commit_ms": round(_commit_ms(), 3),
    }


def line(facts: dict[str, Any]) -> str:
    durability = ", ".join(f"{name} {value}" for name, value in facts["durability"].items())
    return (
        f"{facts['cores']} cores (load {facts['load']}), {facts['system']}; PostgreSQL {facts['postgresql']} "
        f"({durability}; a one-row commit takes {facts['commit_ms']} ms); Python {facts['python']}, "
        f"Django {facts['django']}, psycopg {facts['psycopg']}, django_jobs {facts['django_jobs']}"
    )


def _one(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        value: str = cursor.fetchone()[0]
    return value


def _commit_ms() -> float:
    """What one durable commit costs: the disk's share of everything that commits one by one."""
    durations = []
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE benchmark_commit (number int)")
        for number in range(COMMITS):
            start = time.perf_counter()
            cursor.execute("INSERT INTO benchmark_commit VALUES (%s)", [number])
            durations.append(time.perf_counter() - start)
        cursor.execute("DROP TABLE benchmark_commit")
    return median(durations) * 1000
