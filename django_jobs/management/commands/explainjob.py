"""``manage.py explainjob``: why is this job not running?"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_jobs.management.shell_command import ShellCommand
from django_jobs.operations.explain import explain


class Command(ShellCommand):
    help = "Say where a job stands and what keeps it from running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID", help="The job's id.")

    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        reasons = explain(options["id"])
        return reasons, "\n".join(reason.sentence for reason in reasons)
