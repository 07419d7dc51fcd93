"""``manage.py discarddead``: give dead jobs up."""

from __future__ import annotations

from django_jobs.management.bulk_command import BulkCommand

HELP = """\
Give dead jobs up: each becomes a row of the history, as discarded. They cannot be retried afterwards.

  manage.py discarddead --type sync_contact --error "no such contact" --dry-run
      say how many, and change nothing
  manage.py discarddead --type sync_contact --error "no such contact"
      discard them

Jobs that die after the command has begun are not touched. Interrupted, the operation goes on in the workers'
maintenance; stop it with --abort.
"""


class Command(BulkCommand):
    help = HELP
    kind = "discard"
