"""The processes under attack: workers, supervisors and the one that enqueues. None outlives the kit."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from django_jobs.models import Worker
from faults.patience import wait_patiently
from tests import guarded_exec
from tests.processes import children_of, is_running
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 60
STOP_SECONDS = 90
TAIL = 3000


class Process:
    """This Python with ``arguments``, its output in ``log``. ``environment`` is put over the kit's own."""

    def __init__(self, log: Path, *arguments: str, folder: Path = ROOT, **environment: str) -> None:
        self.log = log
        identity = map(str, (os.getpid(), os.getuid(), os.getgid()))
        command = (sys.executable, "-I", "-S", guarded_exec.__file__, *identity, sys.executable, *arguments)
        paths = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as output:
            self.popen = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | paths | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def is_alive(self) -> bool:
        return self.popen.poll() is None

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def tail(self) -> str:
        return self.output[-TAIL:]

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def ask_to_stop(self) -> None:
        if self.is_alive:
            self.send(signal.SIGTERM)

    def wait(self) -> int:
        """The exit code. Whatever does not stop says where it stands and is killed: that is no exit code of ours."""
        try:
            return self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGUSR1)
            self._wait_for_traceback()
            return self.end()

    def _wait_for_traceback(self) -> None:
        with suppress(AssertionError):
            wait_for(lambda: "most recent call first" in self.tail, timeout=5)

    def end(self) -> int:
        if self.is_alive:
            self.popen.kill()
        return self.popen.wait()


class WorkerProcess(Process):
    """``runjobworker``."""

    def __init__(self, log: Path, *arguments: str, folder: Path = ROOT, **environment: str) -> None:
        super().__init__(log, "-m", "django", "runjobworker", *arguments, folder=folder, **environment)

    def worker_pids(self) -> set[int]:
        """The processes of it that take jobs now."""
        rows = Worker.objects.filter(pid=self.pid, stopped_at=None)
        return {self.pid} if self.is_alive and rows.exists() else set()

    def wait_for_workers(self, number: int) -> None:
        def enough() -> bool:
            if not self.is_alive:
                raise RuntimeError(f"A worker did not start:\n{self.output}")
            return len(self.worker_pids()) >= number

        wait_patiently(enough, START_SECONDS, f"{number} workers to start:\n{self.output}")


class SupervisorProcess(WorkerProcess):
    """``runjobworker --processes``: its children live in sessions of their own."""

    def __init__(self, log: Path, processes: int, *arguments: str) -> None:
        super().__init__(log, "--processes", str(processes), *arguments)
        self.seen: set[int] = set()

    def worker_pids(self) -> set[int]:
        children = children_of(self.pid)
        self.seen |= children
        return set(Worker.objects.filter(pid__in=children, stopped_at=None).values_list("pid", flat=True))

    def end(self) -> int:
        self.seen |= children_of(self.pid)
        code = super().end()
        for pid in filter(is_running, self.seen):
            os.kill(pid, signal.SIGKILL)
        return code
