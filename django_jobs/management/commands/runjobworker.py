"""``manage.py runjobworker``: run jobs until told to stop."""

from __future__ import annotations

from argparse import SUPPRESS
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.connection import ConnectionDoesNotExist

from django_jobs.conf import get_settings
from django_jobs.exceptions import ConfigurationError, DjangoJobsError
from django_jobs.management.database import refuse_unusable_database
from django_jobs.management.described_command import DescribedCommand
from django_jobs.management.probes import add_probe_options, probes
from django_jobs.registry import registry
from django_jobs.worker import exit_codes
from django_jobs.worker.channel import Channel
from django_jobs.worker.isolated import serve_isolated_runs
from django_jobs.worker.ledger import Ledger
from django_jobs.worker.process import WorkerOptions, WorkerProcess
from django_jobs.worker.pulse import end_process, end_process_in
from django_jobs.worker.queue_list import parse_queues
from django_jobs.worker.relaunch import is_this_process
from django_jobs.worker.supervised import Supervised
from django_jobs.worker.supervisor import Supervisor, SupervisorOptions

HELP = """\
Run jobs until SIGTERM or SIGINT.

  manage.py runjobworker
      every queue of DJANGO_JOBS["QUEUES"], sharing --concurrency slots
  manage.py runjobworker --processes 4
      four worker processes, each with these slots, replaced when they die
  manage.py runjobworker --queues urgent:5,default:40,bulk
      5 slots only for urgent, 40 only for default; bulk has --concurrency slots
  manage.py runjobworker --drain --drain-horizon 30
      end when nothing is pending, running or due within 30 s: for demos, tests and batch jobs
  manage.py runjobworker --reload
      replace the worker whenever a module changes: for development

The first signal stops claiming, hands unstarted jobs back and waits for running ones, up to --shutdown-timeout
seconds; what still runs then is handed back too, its attempt refunded. A second signal does that at once. Give your
process manager a longer kill delay than --shutdown-timeout.

Exit codes: 0 stopped, drained, or to be replaced (--max-jobs, --max-memory); 1 wrong arguments or settings, or no
usable database at the start; 70 handlers overran their time-out and did not end, or worker processes could not be
stopped in time; 71 the loop, the renewer or the maintenance stood still. After 70 and 71 start a new process.
"""

LONGEST_SECONDS = 366 * 24 * 3600
MOST_PROCESSES = 256
LAST_SECONDS = 5.0

WHY = {
    exit_codes.STUCK: "Handlers overran their time-out and did not end; their jobs are retried. Start a new process.",
    exit_codes.STANDSTILL: "Maintenance stood still. Start a new process.",
}


class Command(DescribedCommand):
    help = HELP
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add(
            "--queues",
            default="",
            metavar="NAME[:SLOTS],…",
            help="Queues to serve, each with slots of its own or sharing --concurrency. Default: all.",
        )
        add("--concurrency", type=int, metavar="N", help="Slots of the queues without their own.")
        add("--processes", type=int, metavar="N", help="Run N worker processes under a supervisor that replaces them.")
        add("--drain", action="store_true", help="End when there is nothing left to do.")
        add(
            "--drain-horizon",
            type=float,
            default=0,
            metavar="SECONDS",
            help="With --drain: wait for jobs due within this time.",
        )
        add(
            "--shutdown-timeout", type=float, metavar="SECONDS", help="How long to wait for running jobs when stopping."
        )
        add(
            "--no-scheduler",
            action="store_true",
            help="Run no maintenance here: another process stages, rescues and fires.",
        )
        add("--max-jobs", type=int, metavar="N", help="Replace a worker process after about N jobs.")
        add("--max-memory", type=int, metavar="MB", help="Replace a worker process that holds more resident memory.")
        add("--reload", action="store_true", help="Replace the worker processes when a module changes.")
        add_probe_options(parser)
        add("--supervised", metavar="CHANNEL,LEDGER,BORN", help=SUPPRESS)
        add("--isolated", type=int, metavar="FD", help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["isolated"] is not None:
            serve_isolated_runs(Channel.inherited(options["isolated"], patience=None))
            return
        self._check_numbers(options)
        try:
            worker_options = self._options(options)
            refuse_unusable_database()
            code = self._supervise(options) if _has_supervisor(options) else self._work(worker_options, options)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        except ConnectionDoesNotExist as error:
            raise CommandError(f"DJANGO_JOBS['DATABASE'] names no alias of DATABASES: {error}") from error
        if code:
            raise SystemExit(code)

    def _work(self, worker_options: WorkerOptions, options: dict[str, Any]) -> int:
        worker = WorkerProcess(worker_options)
        if options["verbosity"]:
            self._say_hello(worker)
        with probes(options, worker.vitals):
            code = worker.run()
        if code:
            self.stderr.write(WHY[code])
        if worker.left_behind:
            end_process(code)
        if is_this_process():
            end_process_in(LAST_SECONDS, code)
        return code

    def _supervise(self, options: dict[str, Any]) -> int:
        settings = get_settings()
        timeout = options["shutdown_timeout"]
        supervisor = Supervisor(
            SupervisorOptions(
                processes=options["processes"] or 1,
                child_options=_child_options(options),
                shutdown_timeout=settings.shutdown_timeout if timeout is None else timedelta(seconds=timeout),
                drain=options["drain"],
                reload=options["reload"],
            )
        )
        if options["verbosity"]:
            self.stdout.write(f"Supervisor of {options['processes'] or 1} worker processes.")
        with probes(options, supervisor.vitals):
            return supervisor.run()

    def _check_numbers(self, options: dict[str, Any]) -> None:
        for name in ("drain_horizon", "shutdown_timeout"):
            if options[name] is not None and not 0 <= options[name] <= LONGEST_SECONDS:
                raise CommandError(f"{_option(name)} must be 0 to {LONGEST_SECONDS} seconds.")
        for name, most in (("processes", MOST_PROCESSES), ("max_jobs", None), ("max_memory", None)):
            number = options[name]
            if number is not None and (number < 1 or (most is not None and number > most)):
                raise CommandError(f"{_option(name)} must be 1 {f'to {most}' if most else 'or more'}, not {number}.")
        if options["drain_horizon"] and not options["drain"]:
            raise CommandError("--drain-horizon needs --drain.")
        if options["reload"] and options["drain"]:
            raise CommandError("--reload is for workers that go on, --drain for those that end: leave one out.")

    def _options(self, options: dict[str, Any]) -> WorkerOptions:
        try:
            groups = parse_queues(options["queues"], options["concurrency"])
        except DjangoJobsError as error:
            raise CommandError(str(error)) from error
        timeout = options["shutdown_timeout"]
        supervised, ledger = _inherited(options)
        return WorkerOptions(
            groups=groups,
            drain=timedelta(seconds=options["drain_horizon"]) if options["drain"] else None,
            shutdown_timeout=None if timeout is None else timedelta(seconds=timeout),
            maintenance=not options["no_scheduler"],
            max_jobs=options["max_jobs"],
            max_memory=options["max_memory"],
            supervised=supervised,
            ledger=ledger,
        )

    def _say_hello(self, worker: WorkerProcess) -> None:
        self.stdout.write(f"{worker.describe()}; {len(list(registry))} job types.")
        if worker.options.drain is None and worker.options.supervised is None:
            self.stdout.write("Stop it with Ctrl-C or SIGTERM.")


def _has_supervisor(options: dict[str, Any]) -> bool:
    return not options["supervised"] and (options["processes"] is not None or options["reload"])


def _inherited(options: dict[str, Any]) -> tuple[Supervised | None, Ledger | None]:
    """What a supervisor has left open for its child."""
    if not options["supervised"]:
        return None, None
    channel, memory, born_at = map(int, options["supervised"].split(","))
    watch_since = born_at if options["reload"] else None
    return Supervised(Channel.inherited(channel), watch_since=watch_since), Ledger(memory)


# What is not here is the supervisor's own business.
PASSED_ON = (
    "queues",
    "concurrency",
    "drain",
    "drain_horizon",
    "shutdown_timeout",
    "no_scheduler",
    "max_jobs",
    "max_memory",
    "reload",
    "pythonpath",
    "verbosity",
)


def _child_options(options: dict[str, Any]) -> list[str]:
    # By identity: a time-out of 0 equals False.
    given = {
        name: options[name] for name in PASSED_ON if options[name] not in (None, "") and options[name] is not False
    }
    return [_option(name) if value is True else f"{_option(name)}={value}" for name, value in given.items()]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
