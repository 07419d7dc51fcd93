"""Two builds side by side."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

from faults.app.newer_jobs import newer
from faults.arena import Arena
from faults.fault import CannotHappen, fault
from faults.processes import ROOT

# Before there were supervisors, isolated handlers and versions in the register of workers.
OLDER_BUILD = "d1e9a71852e862111159aa0c04c70959a58208ac"
TYPES = ("record", "record_atomic", "record_async", "newer")


@fault("postgresql", "sqlite")
def unknown_type(arena: Arena) -> None:
    """A rolling deploy: the old workers do not know a job type that is enqueued already. They leave it to the new."""
    _roll(arena)


@fault("postgresql", "sqlite")
def older_build(arena: Arena) -> None:
    """A rolling deploy of the library: workers of an older commit of it run beside the new ones, on the new tables."""
    _roll(arena, folder=_checked_out(arena))


def _roll(arena: Arena, *, folder: Path = ROOT) -> None:
    """Old workers, run from ``folder``, first, then new ones beside them, then new ones alone."""
    for _ in arena.rounds(short=1, long=5):
        olds = arena.start_workers(2, folder=folder, FAULTS_RELEASE="old")
        if arena.load is None:
            arena.start_load(types=TYPES)
        waiting = arena.order(newer, seconds=0)
        arena.start_workers(1)
        arena.wait_until_work_goes_on()
        arena.wait_until_ended(waiting)
        for worker in olds:
            worker.ask_to_stop()
        for worker in olds:
            arena.expect(worker.wait() == 0, f"An old worker ended with {worker.popen.returncode}:\n{worker.tail}")
            arena.workers.remove(worker)


def _checked_out(arena: Arena) -> Path:
    """A folder with the package as it was."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        raise CannotHappen("there is no git repository here to take the older build from")
    done = subprocess.run(
        [git, "archive", OLDER_BUILD, "django_jobs"], cwd=ROOT, capture_output=True, check=False, timeout=60
    )
    if done.returncode:
        raise CannotHappen(f"the older build {OLDER_BUILD[:10]} is not in this clone: {done.stderr.decode().strip()}")
    folder = arena.folder / "older"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder
