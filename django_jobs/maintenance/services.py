"""The services that only the leader runs, in a thread where they may take their time."""

from __future__ import annotations

from django_jobs.conf import Settings

from .bulk_runner import BulkRunner
from .dead_group_folder import DeadGroupFolder
from .notifiers import notifier
from .notifying import Notifying
from .observer import Observer
from .partitioner import Partitioner
from .pruner import Pruner
from .service import Service
from .watcher import Watcher


def slow_services(settings: Settings) -> list[Service]:
    return [
        Partitioner(settings.database),
        Pruner(settings),
        Observer(settings),
        Watcher(settings, Notifying(settings.database, [notifier(entry) for entry in settings.notifiers])),
        DeadGroupFolder(settings.database),
        BulkRunner(settings.database),
    ]
