"""The services that only the leader runs, in a thread where they may take their time."""

from __future__ import annotations

from django_jobs.conf import Settings

from .partitioner import Partitioner
from .pruner import Pruner
from .service import Service


def slow_services(settings: Settings) -> list[Service]:
    return [
        Partitioner(settings.database),
        Pruner(settings),
    ]
