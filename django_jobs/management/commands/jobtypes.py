"""``manage.py jobtypes``: the registered job types and how long each is retried."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_jobs.conf import get_settings
from django_jobs.exceptions import ConfigurationError
from django_jobs.policy import JobType
from django_jobs.registry import registry
from django_jobs.retry import RetryPolicy

HEAD = ("type", "queue", "priority", "attempts", "time-out", "if lost", "retried for", "at most")
SECOND = timedelta(seconds=1)
UNITS = (("d", 86_400 * SECOND), ("h", 3_600 * SECOND), ("min", 60 * SECOND), ("s", SECOND))


class Command(BaseCommand):
    help = """\
List the registered job types. "retried for" is how long a job that always fails goes on, from its first attempt to the
start of its last: on average, and at most. The time that the attempts take, and a Retry-After, come on top. "if lost"
is what becomes of a run whose worker died: on_lost of the type."""
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = [_row(job_type) for job_type in sorted(registry, key=lambda job_type: job_type.name)]
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        for line in _table([HEAD, *rows]):
            self.stdout.write(line)


def _row(job_type: JobType) -> tuple[str, ...]:
    settings = get_settings()
    attempts = job_type.max_attempts or settings.max_attempts
    return (
        job_type.name,
        job_type.queue or settings.first_queue,
        str(job_type.priority),
        str(attempts),
        _duration(job_type.time_limit) if job_type.time_limit is not None else "none",
        job_type.on_lost,
        *_window(job_type.retry or settings.retry, attempts),
    )


def _window(policy: object, attempts: int) -> tuple[str, str]:
    if not isinstance(policy, RetryPolicy):
        return "as its function says", ""
    window = policy.window(attempts)
    return _duration(window.expected), _duration(window.longest)


def _duration(duration: timedelta) -> str:
    for unit, size in UNITS:
        if duration >= size:
            return f"{duration / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{duration / SECOND:.2g} s"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
