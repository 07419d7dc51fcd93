"""Sends this app's tables to the alias ``DJANGO_JOBS["DATABASE"]``. Needed only when that is not ``default``."""

from __future__ import annotations

from typing import Any

from .conf import get_settings

APP = "django_jobs"


class JobsRouter:
    """Put ``"django_jobs.routers.JobsRouter"`` first in ``DATABASE_ROUTERS``."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return get_settings().database if model._meta.app_label == APP else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return db == get_settings().database if app_label == APP else None
