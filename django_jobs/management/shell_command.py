"""What the commands for triage in a shell share: who acts, and output for people or for programs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, is_dataclass
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from django_jobs.exceptions import DjangoJobsError
from django_jobs.operations.audit import Actor
from django_jobs.storable import visible_text

from .described_command import DescribedCommand


class ShellCommand(DescribedCommand, ABC):
    """A command that does one thing and says what came of it. An error of this package ends it with exit code 1."""

    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument(
            "--format", choices=["text", "json"], default="text", help="json: one JSON document on standard output."
        )
        return parser

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result, text = self.act(options)
        except DjangoJobsError as error:
            raise CommandError(visible_text(str(error))) from error
        self.stdout.write(_encoded(result) if options["format"] == "json" else visible_text(text))

    @abstractmethod
    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        """Returns what came of it: a dataclass or JSON data for programs, and a text for people."""

    @property
    def actor(self) -> Actor:
        return Actor.of_command()


def _encoded(result: Any) -> str:
    return json.dumps(_plain(result), cls=DjangoJSONEncoder, indent=2)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
