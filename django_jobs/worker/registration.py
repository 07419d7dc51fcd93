"""How a process introduces itself in the table of workers."""

from __future__ import annotations

import os
import platform
import socket
from typing import Any

import django

from django_jobs import __version__
from django_jobs.conf import get_settings
from django_jobs.ids import uuid7
from django_jobs.models import Worker


def new_worker_id() -> str:
    """New at each start, whatever the host or the pod is called."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{uuid7().hex[-12:]}"


def worker_row(worker_id: str, queues: list[dict[str, Any]]) -> Worker:
    """``queues``: groups with their slots, none for a process that runs no jobs."""
    return Worker(
        id=worker_id,
        host=socket.gethostname(),
        pid=os.getpid(),
        queues=queues,
        version=__version__,
        django_version=django.get_version(),
        python_version=platform.python_version(),
        release=get_settings().release,
    )
