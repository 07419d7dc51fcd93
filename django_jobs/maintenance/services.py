"""The services of a worker."""

from __future__ import annotations

from collections.abc import Callable

from django_jobs.conf import Settings
from django_jobs.engines.protocol import Judge

from .bulk_runner import BulkRunner
from .counts import Counts
from .dead_group_folder import DeadGroupFolder
from .partitioner import Partitioner
from .rescuer import Rescuer
from .service import Service
from .stager import Stager


def standard_services(settings: Settings, judge: Judge, poke: Callable[[], None], counts: Counts) -> list[Service]:
    """What keeps the tables going, in every worker unless it was told not to."""
    return [
        Stager(settings.stage_every, poke),
        Rescuer(settings.rescue_every, judge, counts.add_lost),
        Partitioner(settings.database),
        DeadGroupFolder(settings.database),
        BulkRunner(settings.database),
    ]
