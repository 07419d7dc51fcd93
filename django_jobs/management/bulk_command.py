"""What ``retrydead`` and ``discarddead`` share: which dead jobs, what will happen, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware

from django_jobs.operations.bulk import (
    BulkInfo,
    Kind,
    abort_bulk,
    confirm_bulk,
    get_bulk,
    preview_bulk,
    start_bulk,
)
from django_jobs.operations.bulk_step import bulk_step
from django_jobs.operations.dead_filter import DeadFilter

from .shell_command import ShellCommand

LOOK_EVERY = 0.2
BAR_WIDTH = 30
FILTERS = ("type", "fingerprint", "queue", "tenant", "reason", "error")


class BulkCommand(ShellCommand):
    kind: ClassVar[Kind]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="These dead jobs, at most 500.")
        for name in FILTERS:
            parser.add_argument(f"--{name}", help=_HELP[name])
        parser.add_argument("--since", metavar="INSTANT", help="Dead since this instant, such as 2026-11-29T08:00.")
        parser.add_argument("--until", metavar="INSTANT", help="Dead before this instant.")
        parser.add_argument("--all", action="store_true", help="Every dead job, if nothing else is given.")
        parser.add_argument("--dry-run", action="store_true", help="Say what would happen; change nothing.")
        parser.add_argument("--spread", type=float, metavar="MINUTES", help="Not at once but evenly over this time.")
        parser.add_argument("--no-wait", action="store_true", help="Leave the work to the workers' maintenance.")
        parser.add_argument("--abort", metavar="OPERATION", type=UUID, help="Stop an operation where it is.")

    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        if options["abort"]:
            return self._decided(options["abort"], abort_bulk(options["abort"], actor=self.actor), "aborted")
        if options.get("confirm"):
            confirmed = confirm_bulk(options["confirm"], actor=self.actor)
            result = self._decided(options["confirm"], confirmed, "confirmed")
            return self._followed(get_bulk(options["confirm"]), options) if confirmed else result
        how: dict[str, Any] = {"spread": _minutes(options["spread"]), "canary": options.get("canary") or 0}
        meant = _filter(options)
        if options["dry_run"]:
            preview = preview_bulk(self.kind, meant, **how)
            return preview, f"Dry run: {preview}."
        return self._followed(start_bulk(self.kind, meant, actor=self.actor, **how), options)

    def _decided(self, operation: UUID, changed: bool, word: str) -> tuple[Any, str]:
        info = get_bulk(operation)
        return info, f"{operation} is {word}." if changed else f"{operation} was not {word}: it is {info.state}."

    def _followed(self, info: BulkInfo, options: dict[str, Any]) -> tuple[Any, str]:
        """Do the batches here, beside whichever worker does them too, until it is over or waits."""
        if not options["no_wait"]:
            for state in _progress(info.id):
                self._show(state, options)
            info = get_bulk(info.id)
        return info, _summary(info, self.kind)

    def _show(self, info: BulkInfo, options: dict[str, Any]) -> None:
        if options["verbosity"] and options["format"] == "text" and self.stderr.isatty():
            filled = round(info.fraction * BAR_WIDTH)
            bar = f"\r[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {info.done + info.skipped:,} of {info.total or 0:,} "
            self.stderr.write(bar, style_func=str, ending="\n" if info.is_over else "")


_HELP = {
    "type": "Of this job type.",
    "fingerprint": "Of this group, such as 1:9f86d081884c7d65; deadgroups lists them.",
    "queue": "Of this queue.",
    "tenant": "Of this tenant; '' for jobs without one.",
    "reason": "Dead for this reason, such as exhausted or worker_lost.",
    "error": "With this text in the first line of the error.",
}


def _progress(operation: UUID) -> Iterator[BulkInfo]:
    while True:
        more = bulk_step(operation)
        info = get_bulk(operation)
        yield info
        if info.is_over or info.state == "canary":
            return
        if not more:
            time.sleep(LOOK_EVERY)


def _summary(info: BulkInfo, kind: str) -> str:
    done = f"{'retried' if kind == 'retry' else 'discarded'} {info.done:,}, skipped {info.skipped:,} (changed)"
    match info.state:
        case "canary":
            ids = ", ".join(map(str, info.canary_ids))
            return (
                f"{done}. These were the canary: {ids}\nSee how they end with explainjob; then go on with\n"
                f"  manage.py retrydead --confirm {info.id}\nor stop with\n  manage.py retrydead --abort {info.id}"
            )
        case "running":
            return f"{done} so far. Operation {info.id} goes on in the workers' maintenance."
    return f"{done}. Operation {info.id} is {info.state}."


def _filter(options: dict[str, Any]) -> DeadFilter:
    ids = options["ids"] or None
    terms: dict[str, Any] = {name: options[name] for name in FILTERS}
    since, until = _instant(options["since"]), _instant(options["until"])
    meant = DeadFilter(ids=ids, failed_from=since, failed_before=until, **terms)
    if meant.is_empty and not options["all"]:
        raise CommandError("Which dead jobs? Give ids, a filter such as --type, or --all.")
    if options["all"] and not meant.is_empty:
        raise CommandError("--all means every dead job: drop it, or the ids and filters.")
    return meant


def _instant(text: str | None) -> datetime | None:
    """Without an offset: in the project's time zone."""
    if text is None:
        return None
    try:
        instant = parse_datetime(text) or datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text!r} is no instant: write 2026-11-29T08:00 or 2026-11-29T08:00+01:00.") from None
    return make_aware(instant) if is_naive(instant) else instant


def _minutes(number: float | None) -> timedelta | None:
    try:
        return None if number is None else timedelta(minutes=number)
    except (OverflowError, ValueError):
        raise CommandError(f"--spread takes a number of minutes, not {number}.") from None
