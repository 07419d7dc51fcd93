"""``manage.py runjobscheduler``: fire schedules and keep the tables going, without running jobs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_jobs.exceptions import ConfigurationError
from django_jobs.management.database import refuse_unusable_database
from django_jobs.management.described_command import DescribedCommand
from django_jobs.management.probes import add_probe_options, probes
from django_jobs.operations.declared_schedules import declared_schedules
from django_jobs.worker.scheduler import SchedulerProcess

HELP = """\
Fire schedules, stage delayed jobs, rescue the jobs of dead workers and make partitions, until SIGTERM or SIGINT.

Every worker does this too, unless it runs with --no-scheduler. Use this command where workers should do nothing but run
jobs, or where a schedule must fire although every worker is busy or stopped:

  manage.py runjobscheduler
  manage.py runjobworker --no-scheduler

Run two or more of them, on different machines: each slot is fired once however many there are, and if one dies, the
others go on without a pause. The types of the schedules must be installed here, as in a worker.

A signal ends it after the statement it is at, within 5 seconds. Killing it loses nothing.

Exit codes: 0 stopped; 1 wrong settings, or no usable database at the start; 71 it stood still: start a new process.
"""


class Command(DescribedCommand):
    help = HELP
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_probe_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            scheduler = SchedulerProcess()
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        refuse_unusable_database()
        if options["verbosity"]:
            count = len(list(declared_schedules))
            self.stdout.write(f"Scheduler {scheduler.id}; {count} schedules are declared in code.")
            self.stdout.write("Stop it with Ctrl-C or SIGTERM.")
        try:
            with probes(options, scheduler.vitals):
                scheduler.run()
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
