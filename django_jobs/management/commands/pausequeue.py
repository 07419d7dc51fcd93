"""``manage.py pausequeue``: claim nothing more from a queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.timezone import now

from django_jobs.management.shell_command import ShellCommand
from django_jobs.operations.queues import pause


class Command(ShellCommand):
    help = "Claim nothing more from a queue; what runs goes on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", metavar="QUEUE", help="The queue's name.")
        parser.add_argument("--minutes", type=float, metavar="N", help="Resume by itself after this time.")

    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        queue, minutes = options["queue"], options["minutes"]
        if minutes is not None and not 0 < minutes <= 60 * 24 * 366:
            raise CommandError(f"--minutes must be above 0 and at most a year, not {minutes:g}.")
        until = None if minutes is None else now() + timedelta(minutes=minutes)
        pause(queue, until=until, actor=self.actor)
        end = "somebody resumes it" if until is None else f"{until:%Y-%m-%d %H:%M:%S} UTC"
        return {"queue": queue, "paused": True, "until": until}, f"Queue {queue} is paused until {end}."
