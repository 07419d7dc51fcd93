"""Watches this process's modules for changes, by Django's own reloader, in a thread.

The process that has imported them watches them, and its supervisor replaces it. So signal handlers stay in the
main thread, where Python allows them, and a running job ends or is handed back as in any other stop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from os import PathLike, fspath

from django.utils.autoreload import StatReloader, file_changed

from django_jobs import clock


class Watcher(StatReloader):
    """``since``: when this process was started, in milliseconds since 1970. What changed after that, while it was
    being imported, has changed too.
    """

    def __init__(self, changed: Callable[[str], None], since: int) -> None:
        super().__init__()
        self._changed = changed
        self._since = since

    def notify_file_changed(self, path: str | PathLike[str]) -> None:
        """A receiver that has dealt with the file itself, as for a template, returns True."""
        answers = file_changed.send(sender=self, file_path=path)
        if not any(dealt_with for _, dealt_with in answers):
            self._changed(fspath(path))

    def watch(self) -> None:
        modified: dict[str, float] = {}
        while True:
            for path, at in self.snapshot_files():
                before = modified.get(fspath(path))
                modified[fspath(path)] = at
                if self._since < at * 1000 <= clock.milliseconds() if before is None else at > before:
                    self.notify_file_changed(path)
            time.sleep(self.SLEEP_TIME)


def watch_modules(changed: Callable[[str], None], since: int) -> None:
    threading.Thread(target=Watcher(changed, since).watch, name="django_jobs reloader", daemon=True).start()
