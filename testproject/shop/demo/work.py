"""The worker of the demo: a process of its own, as in production, that ends when all is done."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from django_jobs.models import Worker

from .stage import MANAGE, shown, variables

ARGUMENTS = ("--queues", "urgent:2,default,bulk", "--concurrency", "6", "--drain", "--drain-horizon", "30")
PATIENCE = 50  # seconds
TAIL = 15  # lines


def do_all(partners: str, fail_first_attempt: Sequence[str]) -> str:
    """Run ``runjobworker`` until nothing is left to do. Returns its id. Raises CommandError if it fails or is late."""
    log: Path = settings.SHOP_DIR / "worker.log"
    environment = os.environ | variables() | _instructions(partners, fail_first_attempt)
    command = [sys.executable, str(MANAGE), "runjobworker", *ARGUMENTS]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise CommandError(f"The worker was not done after {PATIENCE} s.{_last_words(log)}") from None
        finally:
            _end(process)
    if code != 0:
        raise CommandError(f"The worker ended with code {code}.{_last_words(log)}")
    return _id_of(process.pid)


def _instructions(partners: str, fail_first_attempt: Sequence[str]) -> dict[str, str]:
    return {"SHOP_PARTNER_URL": partners, "SHOP_FAIL_FIRST_ATTEMPT": ",".join(fail_first_attempt)}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _id_of(pid: int) -> str:
    return Worker.objects.filter(pid=pid).latest("started_at").id


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-TAIL:]
    return "\n".join([f" The end of {shown(log)}:", *(f"  {line}" for line in lines)])
