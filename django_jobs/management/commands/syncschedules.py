"""``manage.py syncschedules``: make the table of schedules follow this code, now."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_jobs.management.described_command import DescribedCommand
from django_jobs.operations.declared_schedules import Synced, sync_schedules

HELP = """\
Make the table of schedules follow the schedule() calls of this code.

Workers and schedulers do that by themselves, at their start and every minute. They disable what left the code only when
no running process has declared it for 10 minutes, and leave the words of a newer release alone. This command decides at
once: what this code says counts, and what it does not declare is disabled (never deleted). Run it after a deploy or a
rollback, or to see what would change:

  manage.py syncschedules --dry-run
  manage.py syncschedules --format json

What an operator has enabled or disabled stays so. Schedules made at run time are left alone.

Exit codes: 0 done; 1 a declaration is wrong (the others are synced).
"""


class Command(DescribedCommand):
    help = HELP

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only tell what would change.")
        parser.add_argument("--format", choices=["text", "json"], default="text", help="How to tell. Default: text.")

    def handle(self, *args: Any, **options: Any) -> None:
        results = sync_schedules(decide=True, dry_run=options["dry_run"])
        show = self._show_json if options["format"] == "json" else self._show_text
        show(results)
        wrong = [synced.name for synced in results if synced.action == "wrong"]
        if wrong:
            raise CommandError(f"These declarations are wrong and were not synced: {', '.join(wrong)}.")

    def _show_json(self, results: list[Synced]) -> None:
        self.stdout.write(json.dumps([asdict(synced) for synced in results], indent=2))

    def _show_text(self, results: list[Synced]) -> None:
        for synced in results:
            self.stdout.write(f"{synced.name}: {synced.action}{f' ({synced.detail})' if synced.detail else ''}")
        if not results:
            self.stdout.write("No schedules are declared in code.")
