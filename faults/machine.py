"""Where the report comes from."""

import os
import platform

import django
from django.db import connection

import django_jobs


def line() -> str:
    connection.close()
    database = f"{connection.display_name} {'.'.join(map(str, connection.get_database_version()))}"
    return (
        f"{os.cpu_count()} cores (load {os.getloadavg()[0]:.1f}), {database}, Python {platform.python_version()}, "
        f"Django {django.get_version()}, django_jobs {django_jobs.__version__}"
    )
