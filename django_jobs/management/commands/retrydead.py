"""``manage.py retrydead``: give dead jobs fresh attempts."""

from __future__ import annotations

from uuid import UUID

from django.core.management.base import CommandParser

from django_jobs.management.bulk_command import BulkCommand

HELP = """\
Give dead jobs fresh attempts: same id, same history of errors.

  manage.py retrydead 0193a1b2-…
      this job
  manage.py retrydead --type send_invoice --since 2026-11-29T08:00 --dry-run
      say how many, and change nothing
  manage.py retrydead --type send_invoice --fingerprint 1:9f86d081884c7d65 --canary 5
      five of a group first; the rest after --confirm with the operation's id
  manage.py retrydead --all --spread 30
      everything, evenly over half an hour

Jobs that die after the command has begun are not touched. Interrupted, the operation goes on in the workers'
maintenance; stop it with --abort.
"""


class Command(BulkCommand):
    help = HELP
    kind = "retry"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--canary", type=int, metavar="N", help="So many first; the rest waits for --confirm.")
        parser.add_argument("--confirm", metavar="OPERATION", type=UUID, help="Go on after the canary.")
