"""Liveness for Kubernetes, systemd and people: probes, ``jobhealth``, and a process that ends itself."""

import json
import os
import re
import signal
import socket
import struct
import threading
from contextlib import suppress
from http.client import HTTPConnection

import pytest
from django.db import connection, connections
from django.db.models.functions import Now

from django_jobs import get_job
from django_jobs.models import Job, Worker
from django_jobs.worker.probes import serving_probes
from django_jobs.worker.vitals import Vitals
from tests.app.jobs import hold, spin, stop_loop, stop_renewer
from tests.process.test_command import run
from tests.waiting import wait_for

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="needs a server to keep busy")

# struct ucred: pid, uid, gid
CREDENTIALS = struct.Struct("iII")


def port_of(worker):
    worker.wait_for_output("Probes on port")
    return int(re.search(r"Probes on port (\d+)", worker.output)[1])


def ask(port, path):
    probe = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        probe.request("GET", path)
        response = probe.getresponse()
        return response.status, json.loads(response.read())
    finally:
        probe.close()


def status(port, path):
    return ask(port, path)[0]


def test_probes_answer_although_every_slot_spins(start_worker, wait_for_marks):
    worker = start_worker("--health-port", "0", "--concurrency", "2")
    port = port_of(worker)
    for n in range(2):
        spin.enqueue(label=f"{n}")
    wait_for_marks("0 started", "1 started")
    code, vitals = ask(port, "/live")
    assert (code, vitals["live"], vitals["running"]) == (200, True, 2)
    assert vitals["worker"] == Worker.objects.get(pid=worker.pid).pk
    assert (status(port, "/ready"), status(port, "/else")) == (200, 404)


@pytest.mark.parametrize(
    ("live", "ready", "answers"),
    [(True, True, (200, 200)), (True, False, (200, 503)), (False, True, (503, 503)), (False, False, (503, 503))],
)
def test_a_process_that_stands_still_is_neither_live_nor_ready(live, ready, answers):
    vitals = Vitals(worker="w-1", live=live, ready=ready, running=0)
    with serving_probes("127.0.0.1", 0, lambda: vitals) as port:
        assert (status(port, "/live"), status(port, "/ready")) == answers


def test_a_supervisor_answers_for_its_children(start_supervisor):
    supervisor = start_supervisor(2, "--health-port", "0")
    port = port_of(supervisor)
    wait_for(lambda: status(port, "/ready") == 200)
    assert ask(port, "/live")[1]["processes"] == 2


def test_a_port_that_is_taken_is_refused_by_number():
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("runjobworker", "--health-port", str(port))
    assert ended.returncode == 1
    assert f"port {port}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("stopper", [stop_loop, stop_renewer], ids=["loop", "renewer"])
def test_a_process_whose_loop_or_renewer_stands_still_ends_itself(start_worker, stopper):
    worker = start_worker(LEASE=3, RENEW_EVERY=0.2)
    stopper.enqueue()
    assert worker.wait(40) == 71, worker.output
    assert "has stood still" in worker.output


def test_a_supervisor_replaces_such_a_process(start_supervisor):
    supervisor = start_supervisor(1, LEASE=3, RENEW_EVERY=0.2)
    (first,) = supervisor.workers()
    stop_loop.using(max_attempts=1).enqueue()
    supervisor.wait_for_workers(1, besides=[first])
    assert "worker died: exit code 71" in supervisor.output


@on_postgresql
def test_a_database_that_does_not_answer_makes_it_not_ready_and_not_dead(
    start_worker, gate, wait_for_marks, monkeypatch, stalling_proxy
):
    """Answers stop coming for longer than a watchdog's patience, which is shorter here than that of a call, and for
    longer than a lease; then they come again, and the run goes on with its lease.
    """
    monkeypatch.setenv("TEST_SHORTEST_PATIENCE", "60")
    monkeypatch.setenv("TEST_SHORTEST_STANDSTILL", "4")
    worker = start_worker("--health-port", "0", "--no-scheduler", LEASE=3, POLL_EVERY=1, RENEW_EVERY=0.5)
    port = port_of(worker)
    held = hold.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    stalling_proxy.stall()
    wait_for(lambda: status(port, "/ready") == 503, timeout=30)
    assert status(port, "/live") == 200
    ended = run("jobhealth", "--port", str(port), "--live")
    assert ended.returncode == 0, ended.stderr
    leases = Job.objects.filter(pk=held.id, status="processing")
    wait_for(lambda: leases.filter(locked_until__lt=Now()).exists())
    stalling_proxy.flow()
    wait_for(lambda: leases.filter(locked_until__gt=Now()).exists(), timeout=30, message="the lease to live again")
    gate.touch()
    wait_for(lambda: get_job(held.id).status == "succeeded", timeout=60)
    assert get_job(held.id).attempts == 1
    wait_for(lambda: status(port, "/ready") == 200, timeout=30)


class StallingProxy:
    """Between a worker and PostgreSQL; while it stalls, nothing goes through, and nobody is told."""

    def __init__(self, folder, target):
        self.path = folder / ".s.PGSQL.5432"
        self.target = target
        self.flowing = threading.Event()
        self.flowing.set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.sockets = [self.listener]
        self.threads = []
        self.start(self.accept)

    def start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self.target)
                self.sockets += [near, far]
                self.start(self.pump, near, far)
                self.start(self.pump, far, near)

    def pump(self, source, sink):
        with suppress(OSError):
            while piece := source.recv(65536):
                self.flowing.wait()
                sink.sendall(piece)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def stall(self):
        self.flowing.clear()

    def flow(self):
        self.flowing.set()

    def close(self):
        self.flow()
        for one in self.sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self.threads:
            thread.join(5)


@pytest.fixture
def stalling_proxy(tmp_path_factory, monkeypatch):
    """Workers that are started after it connect through it."""
    settings = connections["default"].settings_dict
    host, port = settings["HOST"], settings["PORT"] or "5432"
    if not host.startswith("/"):
        pytest.skip("the server is not reached by a socket of this machine")
    folder = tmp_path_factory.mktemp("proxy")
    proxy = StallingProxy(folder, f"{host}/.s.PGSQL.{port}")
    url = os.environ["DATABASE_URL"]
    monkeypatch.setenv("DATABASE_URL", through(url, folder))
    yield proxy
    proxy.close()


def through(url, folder):
    from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | {"host": str(folder)}
    netloc = f"{parts.username or 'postgres'}@" + (parts.netloc.rpartition("@")[2] and "")
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(query), ""))


class Systemd:
    """Hears what a process says at $NOTIFY_SOCKET, and who says it."""

    def __init__(self, path):
        self.heard = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(str(path))
        self.thread = threading.Thread(target=self._listen, name="systemd", daemon=True)
        self.thread.start()

    def _listen(self):
        while True:
            state, ((_, _, sender),), *_ = self.socket.recvmsg(100, socket.CMSG_SPACE(CREDENTIALS.size))
            if not state:
                return
            self.heard.append((state, CREDENTIALS.unpack(sender)[0]))

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.socket.getsockname())
        self.thread.join(5)
        self.socket.close()


@pytest.fixture
def systemd(monkeypatch, tmp_path_factory):
    path = tmp_path_factory.mktemp("systemd") / "notify"
    systemd = Systemd(path)
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    yield systemd
    systemd.close()


@pytest.mark.skipif(not hasattr(socket, "SO_PASSCRED"), reason="systemd is Linux")
@pytest.mark.parametrize("starter", ["worker", "supervisor", "scheduler"])
def test_systemd_hears_that_a_process_is_ready_alive_and_stopping_and_hears_nobody_else(request, systemd, starter):
    start = request.getfixturevalue(f"start_{starter}")
    process = start(2) if starter == "supervisor" else start()

    def turns():
        return systemd.heard.count((b"WATCHDOG=1", process.pid))

    wait_for(lambda: turns() >= 2, message="two turns of the watchdog")
    assert systemd.heard[0] == (b"READY=1", process.pid)
    process.send(signal.SIGTERM)
    assert process.wait() == 0, process.output
    wait_for(lambda: (b"STOPPING=1", process.pid) in systemd.heard)
    assert {pid for _, pid in systemd.heard} == {process.pid}
    assert {state for state, _ in systemd.heard} == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}
