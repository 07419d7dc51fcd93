"""``manage.py canceljob``: cancel a job."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_jobs.management.shell_command import ShellCommand
from django_jobs.operations.cancel import cancel

TEXTS = {
    "cancelled": "It is cancelled.",
    "requested": "It is running: its cancellation is requested, and any ending but success becomes cancelled.",
    "too_late": "Too late: it is finished or dead.",
}


class Command(ShellCommand):
    help = "Cancel a job: at once if it has not started, on request if it runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID", help="The job's id.")

    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        answer = cancel(options["id"], actor=self.actor)
        return {"id": options["id"], "cancellation": answer}, TEXTS[answer]
