"""How to start another process of this project: spawned, with nothing of this one but its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from django.conf import ENVIRONMENT_VARIABLE
from django.utils.autoreload import get_child_arguments

COMMAND = "runjobworker"
# Who answers systemd is the process that systemd has started.
NOT_INHERITED = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


def is_this_process() -> bool:
    """Was this process started to run that command? Not where somebody else calls it, as a test does."""
    return sys.argv[1:2] == [COMMAND]


def command_line(*options: str) -> list[str]:
    """``runjobworker`` with these options, by the same program as this process where that was the command.

    So a ``manage.py`` that prepares something does it in the children as well. Elsewhere, as in a test run, by
    ``python -m django``.
    """
    if is_this_process():
        line = get_child_arguments()
        program = line[: len(line) - len(sys.argv) + 1]
    else:
        program = [sys.executable, "-m", "django"]
    return [*program, COMMAND, *options]


def environment() -> Mapping[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    if is_this_process():
        return inherited
    if ENVIRONMENT_VARIABLE not in inherited:
        raise RuntimeError(f"A child process needs {ENVIRONMENT_VARIABLE}, to find the settings of this one.")
    return inherited | {"PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)}
