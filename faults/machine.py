"""Where the report comes from."""

import os
import platform

import django
from django.db import connection

import django_jobs


def line() -> str:
    if connection.vendor == "postgresql":
        connection.close()
        version = ".".join(map(str, divmod(connection.pg_version, 10000)))
        database = f"PostgreSQL {version}"
    else:
        database = f"SQLite {'.'.join(map(str, connection.Database.sqlite_version_info))}"
    return (
        f"{os.cpu_count()} cores (load {os.getloadavg()[0]:.1f}), {database}, Python {platform.python_version()}, "
        f"Django {django.get_version()}, django_jobs {django_jobs.__version__}"
    )
