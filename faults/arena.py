"""Where a fault happens: a database, real worker processes, load, and notes of what was done to whom."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from django.db import connection

from django_jobs.handle import JobHandle
from django_jobs.models import Job, JobHistory
from faults import journal
from faults.app.jobs import RECORDING, record
from faults.databases import Database
from faults.evidence import Silence
from faults.ordering import place_order
from faults.patience import wait_patiently
from faults.processes import ROOT, Process, SupervisorProcess, WorkerProcess
from tests.postgres_server import PostgresServer
from tests.tcp_proxy import TcpProxy
from tests.waiting import wait_for

T = TypeVar("T")

END_SECONDS = 120
STEADY_JOBS = 20
# Jobs a second. SQLite has one writer at a time, and who waits for it is not in a queue.
RATES = {"postgresql": 30, "sqlite": 10}
RECOVERY_SECONDS = 120


class Arena:
    """One fault's. ``short``: once and small, for continuous integration."""

    def __init__(self, database: Database, folder: Path, *, short: bool, seed: int) -> None:
        self.database = database
        self.folder = folder
        self.short = short
        self.random = random.Random(seed)
        self.seed = seed
        self.workers: list[WorkerProcess] = []
        self.load: Process | None = None
        self.afterwards = ExitStack()
        self.exit_codes = {0}
        self.silences: list[Silence] = []
        self.recoveries: list[float] = []
        self.rounds_done = 0
        self.notes: list[str] = []
        self.unexpected: list[str] = []
        os.environ[journal.VARIABLE] = str(folder)
        self.use_lease(3 if short else 5)

    def use_lease(self, seconds: float) -> None:
        """Of the processes that are started from here on."""
        self.lease = seconds
        os.environ["FAULTS_DJANGO_JOBS"] = json.dumps(self._jobs_settings())

    def _jobs_settings(self) -> dict[str, object]:
        return {
            "LEASE": self.lease,
            "RESCUE_EVERY": 0.3,
            "STAGE_EVERY": 0.1,
            "POLL_EVERY": 1,
            "TIMEOUT_GRACE": 1,
            "RETRY": {"base": 0.1, "cap": 1, "floor": 0},
        }

    def rounds(self, *, short: int, long: int) -> Iterator[int]:
        for number in range(short if self.short else long):
            yield number
            self.rounds_done += 1

    # The fleet

    def start_worker(self, *arguments: str, folder: Path = ROOT, **environment: str) -> WorkerProcess:
        worker = WorkerProcess(self._log(), "--concurrency", "10", *arguments, folder=folder, **environment)
        self.workers.append(worker)
        return worker

    def start_workers(
        self, number: int, *arguments: str, folder: Path = ROOT, **environment: str
    ) -> list[WorkerProcess]:
        workers = [self.start_worker(*arguments, folder=folder, **environment) for _ in range(number)]
        for worker in workers:
            worker.wait_for_workers(1)
        return workers

    def start_supervisor(self, processes: int, *arguments: str) -> SupervisorProcess:
        supervisor = SupervisorProcess(self._log(), processes, "--concurrency", "10", *arguments)
        self.workers.append(supervisor)
        supervisor.wait_for_workers(processes)
        return supervisor

    def start_load(self, types: Sequence[str] = tuple(RECORDING), **environment: str) -> None:
        rate = RATES[self.database.vendor] * (1 if self.short else 2)
        arguments = (str(rate), str(self.seed), ",".join(types))
        self.load = Process(self._log("load"), "-m", "faults.enqueuer", *arguments, folder=ROOT, **environment)
        self.wait(self._is_under_load, "the load to be there")

    def _is_under_load(self) -> bool:
        return len(journal.read(journal.ACKNOWLEDGED)) >= STEADY_JOBS and bool(journal.read(journal.RUNS))

    @property
    def server(self) -> PostgresServer:
        """The kit's own PostgreSQL, for a fault that has ``needs_server`` or has looked for it."""
        assert self.database.server is not None, "the fault lacks needs_server=True"
        return self.database.server

    def proxy(self) -> TcpProxy:
        """In front of the database; give its ``FAULTS_DATABASE`` to the processes that shall go through it."""
        parameters = connection.get_connection_params()
        host, port = parameters.get("host", "localhost"), int(parameters.get("port") or 5432)
        proxy = TcpProxy(f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port))
        self.afterwards.callback(proxy.close)
        return proxy

    def _log(self, kind: str = "worker") -> Path:
        return self.folder / f"{kind}-{len(list(self.folder.glob(f'{kind}-*')))}.log"

    # What is done to it

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        self.silences.append(Silence(pid=pid, since=journal.now(), until=None, why=signal.Signals(number).name))
        os.kill(pid, number)

    def replace(self, *ended: WorkerProcess) -> None:
        """New workers for those that end by themselves by now."""
        for worker in ended:
            worker.wait()
            self.workers.remove(worker)
        self.start_workers(len(ended))

    def freeze(self, pids: Sequence[int], seconds: float) -> None:
        """SIGSTOP, and SIGCONT after that long. Before it everybody has the time to renew leases which an outage, or
        somebody who was stopped while holding the lock of a SQLite file, kept from it: the verdict counts from there.
        """
        self.pause(self.lease / 3)
        with self.silence(pids, "SIGSTOP"):
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            self.pause(seconds)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    @contextmanager
    def silence(self, pids: Sequence[int], why: str) -> Iterator[None]:
        """For the time of the block these processes cannot renew their leases."""
        since = journal.now()
        yield
        self.silences += [Silence(pid=pid, since=since, until=journal.now(), why=why) for pid in pids]

    def pause(self, seconds: float) -> None:
        """Let a fault last: its length is part of it, and nothing is asserted afterwards."""
        end = journal.now() + seconds
        wait_for(lambda: journal.now() >= end, timeout=seconds + 60)

    # What is seen of it

    def order(self, handle: JobHandle, **payload: object) -> str:
        """Enqueue one job by hand, however often the database refuses."""
        return str(wait_for(lambda: place_order(handle, **payload), RECOVERY_SECONDS, "the database to take a job"))

    def order_long_runs(self, number: int, seconds: float) -> list[int]:
        """So many jobs that run for so long. Returns the processes that run them now."""
        job_ids = {self.order(record, seconds=seconds) for _ in range(number)}

        def pids() -> list[int] | None:
            runs = [run for run in journal.noted_runs() if run.job_id in job_ids]
            return sorted({run.pid for run in runs}) if len(runs) >= number else None

        return self.wait(pids, f"{number} long runs to begin")

    def order_long_runs_on(self, pids: Iterable[int], seconds: float) -> None:
        """The same, one after the other, until each of these processes runs one."""
        running: set[int] = set()
        while not running.issuperset(pids):
            running.update(self.order_long_runs(1, seconds))

    def order_begun(self, seconds: float) -> str:
        """One job that runs for so long, once it does."""
        job_id = self.order(record, seconds=seconds)
        self.wait(lambda: any(run.job_id == job_id for run in journal.noted_runs()), "the job to run")
        return job_id

    def wait(self, condition: Callable[[], T | None], what: str, timeout: float = RECOVERY_SECONDS) -> T:
        """The condition may ask the database; while that is away, it does not hold."""
        return wait_patiently(condition, timeout, what)

    def wait_until_work_goes_on(self) -> None:
        """A job that is enqueued now is done."""
        job_id = self.order(record, seconds=0)
        self.wait(lambda: JobHistory.objects.filter(job_id=job_id).exists(), "work to go on")

    def wait_until_recovered(self) -> None:
        """The same, when an outage has just ended: how long it takes counts as a recovery."""
        over = journal.now()
        self.wait_until_work_goes_on()
        self.recoveries.append(journal.now() - over)

    def wait_until_nothing_is_suspect(self) -> None:
        """What was lost has run, one at a time in each process, so that the next round starts afresh."""
        self.wait(lambda: not Job.objects.filter(lost_runs__gt=0).exists(), "what was lost to have run")

    def wait_until_ended(self, *job_ids: str) -> None:
        self.wait(lambda: not Job.objects.filter(pk__in=job_ids).exists(), f"{len(job_ids)} jobs to end")

    def expect(self, holds: object, otherwise: str) -> None:
        """Beside what the verdict checks after each fault."""
        if not holds:
            self.unexpected.append(otherwise)

    # The end of it

    def finish(self) -> None:
        """Wait until every job has ended and every process has stopped. What does not is unexpected."""
        self.unexpected += [*self._stop_load(), *self._let_jobs_end(), *self._stop_workers()]
        self.afterwards.close()

    def _stop_load(self) -> Iterator[str]:
        if self.load is not None:
            self.load.ask_to_stop()
            if code := self.load.wait():
                yield f"The enqueuer ended with exit code {code}:\n{self.load.tail}"

    def _let_jobs_end(self) -> Iterator[str]:
        try:
            self.wait(lambda: not Job.objects.exists(), "all jobs to end", END_SECONDS)
        except AssertionError:
            columns = ("id", "type", "status", "attempts", "run_at", "locked_by", "locked_until", "last_error")
            yield from (f"Stuck: {row}" for row in Job.objects.values(*columns)[:5])

    def _stop_workers(self) -> Iterator[str]:
        for worker in self.workers:
            worker.ask_to_stop()
        for worker in self.workers:
            code = worker.wait()
            if code not in self.exit_codes:
                yield f"A worker ended with exit code {code}:\n{worker.tail}"

    def end(self) -> None:
        """Whatever is left after an error."""
        for process in [*self.workers, *([self.load] if self.load else [])]:
            process.end()
        self.afterwards.close()
        connection.close()
