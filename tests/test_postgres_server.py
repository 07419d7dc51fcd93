import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.postgres_server import PostgresServer, remove_abandoned_folders
from tests.processes import PROC, children_of, is_running
from tests.waiting import wait_for

HOLDS_A_SERVER = """
import signal
from tests.postgres_server import PostgresServer
with PostgresServer() as server:
    print(server.pid, server.folder, flush=True)
    signal.pause()
"""


@pytest.fixture(scope="module")
def server():
    with PostgresServer(synchronous_commit="on") as server:
        yield server


def test_the_server_answers_on_its_socket_only(server):
    with psycopg.connect(server.url(), autocommit=True) as connection:
        settings = connection.execute("SELECT current_setting('listen_addresses'), current_setting('fsync')")
        assert settings.fetchone() == ("", "off")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_server_of_root_is_not_root(server):
    assert (server.socket_dir / "data").stat().st_uid != 0
    assert server.pid in children_of(os.getpid())


def test_committed_rows_survive_an_immediate_restart(server):
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    server.restart("immediate")
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


def test_a_stopped_server_leaves_neither_process_nor_folder():
    with PostgresServer() as server:
        processes = {server.pid, *children_of(server.pid)}
    assert not any(map(is_running, processes))
    assert not server.folder.exists()


@pytest.mark.skipif(not PROC.exists(), reason="needs Linux")
def test_the_server_ends_when_its_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", HOLDS_A_SERVER], stdout=subprocess.PIPE) as parent:
        pid, folder = parent.stdout.readline().decode().split()
        processes = {int(pid), *children_of(int(pid))}
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, processes)), message="PostgreSQL to end")
    remove_abandoned_folders()
    assert not Path(folder).exists()
