"""The processes that are measured: real workers and what they are compared with. None outlives this process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.stamps import VARIABLE
from tests import guarded_exec

ROOT = Path(__file__).resolve().parent.parent
WORKER = ("-m", "django", "runjobworker", "--verbosity", "0")


def spawn(
    *arguments: str, alias: str = "default", stamps: Path | None = None, silent: bool = False
) -> subprocess.Popen[str]:
    """This Python with ``arguments``. Its standard input is a pipe, so that it can wait for its end there.

    ``silent``: it fails on purpose, and what it says of that is thrown away.
    """
    environment = os.environ | {"BENCHMARK_ONLY": alias, "PYTHONPATH": str(ROOT), VARIABLE: str(stamps or "")}
    identity = map(str, (os.getpid(), os.getuid(), os.getgid()))
    command = (sys.executable, "-I", "-S", guarded_exec.__file__, *identity, sys.executable, *arguments)
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if silent else None,
    )


def run(*arguments: str, alias: str = "default") -> float:
    """Wait for its end; returns the seconds of processor time it took. RuntimeError if it failed."""
    process = spawn(*arguments, alias=alias)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with exit code {process.returncode}.")
    return usage.ru_utime + usage.ru_stime


def drain(*arguments: str, alias: str = "default") -> float:
    return run(*WORKER, "--drain", *arguments, alias=alias)


@contextmanager
def worker(
    *arguments: str, alias: str = "default", stamps: Path | None = None, silent: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """A worker process that goes on until the block ends."""
    with ended_after(spawn(*WORKER, *arguments, alias=alias, stamps=stamps, silent=silent)) as process:
        yield process


@contextmanager
def ended_after(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
