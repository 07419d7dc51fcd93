"""``manage.py jobhealth``: is the work going on? For people, monitors and container probes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from http.client import HTTPConnection, HTTPException
from typing import Any

from django.core.management.base import CommandParser
from django.db import DatabaseError

from django_jobs.management.database import bounded_connection
from django_jobs.management.described_command import DescribedCommand
from django_jobs.operations.health import Health, health
from django_jobs.operations.leadership import NOBODY_LEADS

HELP = """\
Tell whether the work is going on: the jobs database, the queues, lost leases, who leads the maintenance and, with
--port, one worker process.

  manage.py jobhealth
      does the database answer, how long has the oldest job of each queue waited, who works, who leads, what is lost
  manage.py jobhealth --max-age 300 --format json
      the same for a monitor: a failure if a job of a queue that is not paused has waited for five minutes
  manage.py jobhealth --port 8070 --live
      only whether the process with runjobworker --health-port 8070 turns over; the database is not asked

Exit codes: 0 all is well; 1 something is not, and it is named.
"""

PROBE_SECONDS = 5


class Command(DescribedCommand):
    help = HELP
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--port", type=int, metavar="PORT", help="Ask the worker process with this --health-port as well.")
        add("--host", default="127.0.0.1", metavar="HOST", help="Where it is. Default: 127.0.0.1.")
        add("--live", action="store_true", help="Ask only the process, and only whether it turns over. Needs --port.")
        add("--max-age", type=float, metavar="SECONDS", help="Fail if a job has waited longer than this.")
        add("--max-lost", type=int, metavar="N", help="Fail if more leases than this are lost and not rescued yet.")
        add("--format", choices=["text", "json"], default="text", help="text or json.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["live"] and options["port"] is None:
            self.stderr.write("--live needs --port: the --health-port of the process.")
            raise SystemExit(1)
        report: dict[str, Any] = {}
        faults: list[str] = []
        if options["port"] is not None:
            faults += self._look_at_process(report, options)
        if not options["live"]:
            faults += self._look_at_tables(report, options)
        report |= {"well": not faults, "faults": faults}
        self.stdout.write(json.dumps(report, indent=2) if options["format"] == "json" else "\n".join(_lines(report)))
        if faults:
            raise SystemExit(1)

    def _look_at_process(self, report: dict[str, Any], options: dict[str, Any]) -> Iterator[str]:
        place = f"{options['host']}:{options['port']}"
        try:
            report["process"] = vitals = _ask(options["host"], options["port"])
        except (OSError, HTTPException, ValueError) as error:
            report["process"] = None
            yield f"The process at {place} does not answer: {error}."
            return
        if not vitals.get("live"):
            yield f"The process at {place} stands still."
        elif not vitals.get("ready") and not options["live"]:
            yield f"The process at {place} does not reach the jobs database."

    def _look_at_tables(self, report: dict[str, Any], options: dict[str, Any]) -> Iterator[str]:
        try:
            with bounded_connection():
                found = health()
        except DatabaseError as error:
            report["database"] = False
            yield f"The jobs database does not answer: {str(error).strip()}"
            return
        report |= _as_json(found)
        for queue in report["queues"]:
            if options["max_age"] is not None and not queue["paused"] and (queue["oldest"] or 0) > options["max_age"]:
                yield f"A job of queue {queue['queue']!r} has waited for {queue['oldest']:.0f} s."
        if found.leader is None:
            yield NOBODY_LEADS
        if options["max_lost"] is not None and found.lost_leases > options["max_lost"]:
            yield f"{found.lost_leases} leases are lost and not rescued yet."


def _ask(host: str, port: int) -> dict[str, Any]:
    connection = HTTPConnection(host, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/ready")
        vitals = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return vitals if isinstance(vitals, dict) else {}


def _as_json(found: Health) -> dict[str, Any]:
    """Ages in seconds."""
    queues = [asdict(queue) | {"oldest": queue.oldest and queue.oldest.total_seconds()} for queue in found.queues]
    return {
        "database": True,
        "queues": queues,
        "lost_leases": found.lost_leases,
        "workers": found.workers,
        "leader": found.leader,
    }


def _lines(report: dict[str, Any]) -> Iterator[str]:
    if vitals := report.get("process"):
        state = ("ready" if vitals.get("ready") else "live, not ready") if vitals.get("live") else "stands still"
        yield f"process    {vitals.get('worker')}: {state}, {vitals.get('running')} jobs"
    if report.get("database"):
        yield f"workers    {report['workers']} seen in the last minute"
        yield f"leader     {report['leader'] or 'nobody'}"
        yield f"lost       {report['lost_leases']} leases"
        for queue in report.get("queues", ()):
            age = "" if queue["oldest"] is None else f", the oldest for {queue['oldest']:.0f} s"
            paused = " (paused)" if queue["paused"] else ""
            yield f"queue      {queue['queue']}: {queue['waiting']} waiting{age}{paused}"
    yield from (f"FAULT      {fault}" for fault in report["faults"])
    if report["well"]:
        yield "All is well."
