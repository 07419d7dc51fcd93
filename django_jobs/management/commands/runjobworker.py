"""``manage.py runjobworker``: run jobs until told to stop."""

from __future__ import annotations

import logging
import os
import sys
from argparse import RawDescriptionHelpFormatter
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.connection import ConnectionDoesNotExist

from django_jobs.exceptions import ConfigurationError, DjangoJobsError
from django_jobs.management.database import refuse_unusable_database
from django_jobs.registry import registry
from django_jobs.worker.process import WorkerOptions, WorkerProcess
from django_jobs.worker.queue_list import parse_queues

HELP = """\
Run jobs until SIGTERM or SIGINT.

  manage.py runjobworker
      every queue of DJANGO_JOBS["QUEUES"], sharing --concurrency slots
  manage.py runjobworker --queues urgent:5,default:40,bulk
      5 slots only for urgent, 40 only for default; bulk has --concurrency slots
  manage.py runjobworker --drain --drain-horizon 30
      end when nothing is pending, running or due within 30 s: for demos, tests and batch jobs

The first signal stops claiming, hands unstarted jobs back and waits for running ones, up to --shutdown-timeout
seconds; what still runs then is handed back too, its attempt refunded. A second signal does that at once. Give your
process manager a longer kill delay than --shutdown-timeout.

Exit codes: 0 stopped or drained; 1 wrong arguments or settings, or no usable database at the start; 70 handlers
overran their time-out and did not end, so start a new process.
"""

LONGEST_SECONDS = 366 * 24 * 3600


STUCK = "Handlers overran their time-out and did not end; their jobs are retried elsewhere. Start a new process."


def _end_now(code: int) -> None:
    """Without waiting for threads, as the interpreter would: their jobs belong to others by now."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Command(BaseCommand):
    help = HELP
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queues",
            default="",
            metavar="NAME[:SLOTS],…",
            help="Queues to serve, each with slots of its own or sharing --concurrency. Default: all.",
        )
        parser.add_argument("--concurrency", type=int, metavar="N", help="Slots of the queues without their own.")
        parser.add_argument("--drain", action="store_true", help="End when there is nothing left to do.")
        parser.add_argument(
            "--drain-horizon",
            type=float,
            default=0,
            metavar="SECONDS",
            help="With --drain: wait for jobs due within this time.",
        )
        parser.add_argument(
            "--shutdown-timeout", type=float, metavar="SECONDS", help="How long to wait for running jobs when stopping."
        )
        parser.add_argument(
            "--no-scheduler",
            action="store_true",
            help="Run no maintenance here: another process stages, rescues and fires.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            worker = WorkerProcess(self._options(options))
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        except ConnectionDoesNotExist as error:
            raise CommandError(f"DJANGO_JOBS['DATABASE'] names no alias of DATABASES: {error}") from error
        refuse_unusable_database()
        if options["verbosity"]:
            self._say_hello(worker)
        code = worker.run()
        if code:
            self.stderr.write(STUCK)
        if worker.left_behind:
            _end_now(code)

    def _options(self, options: dict[str, Any]) -> WorkerOptions:
        for name in ("drain_horizon", "shutdown_timeout"):
            if options[name] is not None and not 0 <= options[name] <= LONGEST_SECONDS:
                raise CommandError(f"--{name.replace('_', '-')} must be 0 to {LONGEST_SECONDS} seconds.")
        if options["drain_horizon"] and not options["drain"]:
            raise CommandError("--drain-horizon needs --drain.")
        try:
            groups = parse_queues(options["queues"], options["concurrency"])
        except DjangoJobsError as error:
            raise CommandError(str(error)) from error
        timeout = options["shutdown_timeout"]
        return WorkerOptions(
            groups=groups,
            drain=timedelta(seconds=options["drain_horizon"]) if options["drain"] else None,
            shutdown_timeout=None if timeout is None else timedelta(seconds=timeout),
            maintenance=not options["no_scheduler"],
        )

    def _say_hello(self, worker: WorkerProcess) -> None:
        self.stdout.write(f"{worker.describe()}; {len(list(registry))} job types.")
        if worker.options.drain is None:
            self.stdout.write("Stop it with Ctrl-C or SIGTERM.")
