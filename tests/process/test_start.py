"""Having the app installed starts nothing: no thread, no connection."""

import subprocess
import sys

import django
import pytest

from tests.process.command import ROOT, environment

REPORT = """
import sys, threading
import django
from django.core.management import call_command
from django.db import connections
django.setup()
import django_jobs.handle, django_jobs.worker.process
for command in sys.argv[1:]:
    call_command(command, verbosity=0)
print([thread.name for thread in threading.enumerate()])
print([wrapper.alias for wrapper in connections.all(initialized_only=True) if wrapper.connection is not None])
"""


def report(*commands):
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", REPORT, *commands],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-2:]


@pytest.mark.parametrize("command", [(), ("check",), ("check", "check")], ids=["setup", "check", "check twice"])
def test_importing_and_checking_start_no_thread_and_open_no_connection(command):
    threads, connections = report(*command)
    assert threads == "['MainThread']"
    # From 6.1 on, Django's own checks look into every database.
    assert connections == "[]" or (command and django.VERSION >= (6, 1))


def test_migrating_starts_no_thread():
    assert report("migrate")[0] == "['MainThread']"
