"""The options of commands that serve probes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.core.management.base import CommandParser

from django_jobs.worker.probes import serving_probes
from django_jobs.worker.vitals import Vitals


def add_probe_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--health-port", type=int, metavar="PORT", help="Serve /live and /ready over HTTP. 0: any free port.")
    add("--health-host", default="0.0.0.0", metavar="HOST", help="Address of --health-port. Default: all.")  # noqa: S104


def probes(options: dict[str, Any], look: Callable[[], Vitals]) -> AbstractContextManager[object]:
    """For the time of the block, if the options ask for them."""
    if options["health_port"] is None:
        return nullcontext()
    return serving_probes(options["health_host"], options["health_port"], look)
