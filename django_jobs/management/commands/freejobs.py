"""``manage.py freejobs``: a machine is gone for good; do not wait for its leases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from django_jobs.conf import get_settings
from django_jobs.engines import open_session
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.maintenance.counts import Counts
from django_jobs.management.database import bounded_connection
from django_jobs.management.shell_command import ShellCommand
from django_jobs.operations.holders import Holder, holders
from django_jobs.worker.freeing import free_leases, judge_of_dead, report_counts
from django_jobs.worker.registration import new_worker_id

HELP = """\
Free the jobs of a worker process that is gone, now, instead of when its leases run out.

  manage.py freejobs
      list who holds jobs
  manage.py freejobs web-1-4711-2f0c6a9be1d4
      free what this process holds
  manage.py freejobs --host web-1 --dry-run
      show what would be freed if everything on this machine is gone

Each run counts as lost: the job is retried by its policy, or buried if its attempts are used up or its type says
on_lost="bury". Should the process live after all, nothing it writes about these runs counts; but the jobs may run
twice. So a process that was seen in the last minute is refused, unless --force is given.

Exit codes: 0 done; 1 refused, and nothing was freed.
"""


class Command(ShellCommand):
    help = HELP

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("workers", nargs="*", metavar="WORKER", help="Names of worker processes, as the list shows them.")
        add("--host", metavar="HOST", help="All worker processes of this machine.")
        add("--force", action="store_true", help="Free the jobs of processes that were seen a moment ago, too.")
        add("--dry-run", action="store_true", help="Show what would be freed.")

    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        found = _holders()
        if not options["workers"] and not options["host"]:
            return _told([asdict(holder) for holder in found])
        chosen = self._chosen(found, options)
        lively = [holder.worker for holder in chosen if holder.lively]
        if lively and not options["force"]:
            raise CommandError(
                f"Seen in the last minute: {', '.join(lively)}. Stop these processes, or use --force if they are "
                "certainly gone: their jobs may run twice."
            )
        freed = {} if options["dry_run"] else _free(chosen)
        return _told([asdict(holder) | {"freed": freed.get(holder.worker, 0)} for holder in chosen])

    def _chosen(self, found: list[Holder], options: dict[str, Any]) -> list[Holder]:
        unknown = set(options["workers"]) - {holder.worker for holder in found}
        if unknown:
            raise CommandError(f"These hold no jobs: {', '.join(sorted(unknown))}. Without arguments, all are listed.")
        return [
            holder
            for holder in found
            if holder.worker in options["workers"] or (options["host"] and holder.host == options["host"])
        ]


def _holders() -> list[Holder]:
    try:
        with bounded_connection():
            return list(holders())
    except DatabaseError as error:
        raise CommandError(f"The jobs database does not answer, and nothing was freed: {str(error).strip()}") from error


def _free(chosen: list[Holder]) -> dict[str, int]:
    """How many, of each."""
    settings, counts = get_settings(), Counts()
    config = EngineConfig(alias=settings.database, worker=f"freejobs-{new_worker_id()}", lease=settings.lease)
    session, judge = open_session(config), judge_of_dead("freed by an operator", None)
    freed: dict[str, int] = {}
    try:
        for holder in chosen:
            freed[holder.worker] = len(free_leases(session, holder.worker, judge, counts))
            report_counts(counts, config)
    except EngineUnavailable as error:
        raise CommandError(f"The jobs of {holder.worker} could not be freed: {error}") from error
    finally:
        session.close()
    return freed


def _told(report: list[dict[str, Any]]) -> tuple[Any, str]:
    return report, "\n".join(_lines(report)) or "Nobody holds jobs."


def _lines(report: list[dict[str, Any]]) -> Iterator[str]:
    for row in report:
        seen = "not among the workers" if row["seen"] is None else f"seen {row['seen']:.0f} s ago"
        freed = f", {row['freed']} freed" if "freed" in row else ""
        yield f"{row['worker']}: {row['jobs']} jobs, {seen}{', alive' if row['lively'] else ''}{freed}"
