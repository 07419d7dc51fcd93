"""The services that only the leader runs, in threads where they may take their time."""

from __future__ import annotations

from collections.abc import Callable

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


def slow_services(settings: Settings, hasten: Callable[[str], None]) -> list[Service]:
    return [
        Partitioner(settings.database),
        Pruner(settings),
        Observer(settings),
        Watcher(settings, lambda: hasten(Notifying.name)),
        DeadGroupFolder(settings.database),
        BulkRunner(settings.database),
    ]


def notifying(settings: Settings) -> Notifying:
    return Notifying(settings.database, [notifier(entry) for entry in settings.notifiers])
