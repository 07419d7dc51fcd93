"""The services of a worker."""

from __future__ import annotations

from collections.abc import Callable

from django_jobs.conf import Settings
from django_jobs.engines.protocol import Judge
from django_jobs.operations.firing import SetAside

from .declarer import Declarer
from .firing import Firing
from .mender import Mender
from .partitioner import Partitioner
from .rescuer import Rescuer
from .service import Service
from .stager import Stager


def standard_services(settings: Settings, judge: Judge, poke: Callable[[], None]) -> list[Service]:
    """What keeps the tables going, in every worker unless it was told not to."""
    aside = SetAside()
    return [
        Stager(settings.stage_every, poke),
        Rescuer(settings.rescue_every, judge),
        Declarer(),
        Firing(aside),
        Mender(aside),
        Partitioner(settings.database),
    ]
