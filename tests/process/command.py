"""``python -m django runjobworker`` as a process of its own, with the database of the test."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from django_jobs.models import Worker
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]


def environment(**jobs_settings):
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.process.settings",
        "TEST_DJANGO_JOBS": json.dumps(jobs_settings),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }


class WorkerCommand:
    """Its output is in ``output``. ``end()`` kills it if it is still there."""

    def __init__(self, folder, *arguments, wrapper=(), settings=None, command="runjobworker", module="django"):
        self.log = folder / f"worker-{len(list(folder.glob('worker-*')))}.log"
        words = [*wrapper, sys.executable, "-m", module, command, *arguments]
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                words,
                cwd=ROOT,
                env=environment(**(settings or {})),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self):
        return self.popen.pid

    @property
    def output(self):
        return self.log.read_text()

    def wait_until_ready(self):
        """It can be stopped gracefully from here on."""
        wait_for(self._is_registered, timeout=30, message=f"worker {self.pid} to start")
        return self

    def _is_registered(self):
        assert self.popen.poll() is None, self.output
        return Worker.objects.filter(pid=self.pid, stopped_at=None).exists()

    def send(self, number):
        os.kill(self.pid, number)

    def stop(self, number=signal.SIGTERM):
        """Send the first signal, and wait until it was heard: two at the same instant would count as one."""
        self.send(number)
        self.wait_for_output("Stopping: no more claims")

    def stop_at_once(self, number=signal.SIGTERM):
        self.stop(number)
        self.send(number)

    def wait_for_output(self, text):
        wait_for(lambda: text in self.output, timeout=60, message=f"{text!r} in the output")

    def wait(self, timeout=60):
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker has not ended after {timeout} s:\n{self.output}") from None

    def end(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
