"""The memory of one idle worker process above that of the same project after ``django.setup()``.

Both processes are alive while they are measured; the worker has run one job and sleeps. RSS counts every page in
memory, PSS shares those that several processes use among them, USS counts a process's own only. From
/proc: without it there is nothing to say.
"""

import tempfile
import time
from pathlib import Path

from benchmarks import children
from benchmarks.app.jobs import stamp
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from benchmarks.stamps import read_stamps
from benchmarks.tables import empty
from tests.waiting import wait_for

MEGABYTE = 1024  # in kB, as /proc counts
REST = 3.0
ONLY_SET_UP = "import sys, django; django.setup(); print('ready', flush=True); sys.stdin.read()"
MOST_ABOVE = 25.0


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    if not Path("/proc/self/smaps_rollup").exists():
        return []
    empty()
    with tempfile.TemporaryDirectory() as folder:
        stamps = Path(folder) / "stamps"
        with (
            children.ended_after(children.spawn("-c", ONLY_SET_UP)) as project,
            children.worker(stamps=stamps) as worker,
        ):
            assert project.stdout
            project.stdout.readline()
            stamp.enqueue(number=1)
            wait_for(lambda: read_stamps(stamps), timeout=30, message="the worker's first job")
            time.sleep(REST)
            set_up, idle = megabytes(project.pid), megabytes(worker.pid)
    return [
        Figure(what=f"{kind} of the worker", value=idle[kind], unit="MB", against="project", compared=set_up[kind])
        for kind in idle
    ] + [
        Figure(
            what=f"{kind} above the project",
            value=idle[kind] - set_up[kind],
            unit="MB",
            goals=(Goal(of="value", most=MOST_ABOVE),),
        )
        for kind in idle
    ]


def megabytes(pid: int) -> dict[str, float]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    own = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return {name: kB / MEGABYTE for name, kB in (("RSS", kilobytes["Rss"]), ("PSS", kilobytes["Pss"]), ("USS", own))}
