"""``manage.py resumequeue``: claim from a queue again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_jobs.management.shell_command import ShellCommand
from django_jobs.operations.queues import resume


class Command(ShellCommand):
    help = "Claim from a paused queue again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", metavar="QUEUE", help="The queue's name.")

    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        resume(options["queue"], actor=self.actor)
        return {"queue": options["queue"], "paused": False}, f"Queue {options['queue']} is running."
