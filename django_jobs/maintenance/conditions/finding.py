"""What a condition is given and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.conf import Settings
from django_jobs.models import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """``now``: the database's time."""

    alias: str
    now: datetime
    settings: Settings

    @property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[self.alias]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The condition holds for ``subject``. ``summary``: one sentence with the numbers. ``details``: plain JSON."""

    subject: str
    summary: str
    severity: Severity = Severity.ERROR
    details: dict[str, Any] = field(default_factory=dict)


Condition = Callable[[View], Iterable[Finding]]


def in_words(duration: timedelta) -> str:
    """Roughly: ``3 d 4 h``, ``5 min``, ``40 s``."""
    seconds = int(duration.total_seconds())
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"
