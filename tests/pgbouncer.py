"""A PgBouncer in transaction mode in front of a PostgreSQL. Where it is not installed, the test is skipped."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from tests.postgres_server import database_user
from tests.waiting import wait_for

CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} {password}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 20
logfile = {folder}/log
ignore_startup_parameters =
{more}
"""


class PgBouncer:
    """``server``: the connection parameters of the PostgreSQL behind it. ``settings``: of its own, more of them."""

    def __init__(self, server, **settings):
        self.settings = settings
        self.program = shutil.which("pgbouncer")
        if self.program is None:
            lack = "pgbouncer is not installed (apt-get install pgbouncer)"
            if os.environ.get("PGBOUNCER_TESTS") == "required":
                pytest.fail(f"PGBOUNCER_TESTS=required, but {lack}", pytrace=False)
            pytest.skip(lack)
        self.server = server

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="django-jobs-pgbouncer-"))
        password = self.server.get("password")
        text = CONFIGURATION.format(
            host=self.server.get("host", "localhost"),
            port=self.server.get("port") or 5432,
            user=self.server["user"],
            password=f"password={password}" if password else "",
            folder=self.folder,
            more="\n".join(f"{name} = {value}" for name, value in self.settings.items()),
        )
        (self.folder / "pgbouncer.ini").write_text(text)
        identity = {}
        if os.geteuid() == 0:
            user, group = database_user()
            identity = {"user": user, "group": group, "extra_groups": []}
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, user, group)
        self.process = subprocess.Popen(
            [self.program, "--quiet", str(self.folder / "pgbouncer.ini")], stdin=subprocess.DEVNULL, **identity
        )
        try:
            wait_for(self._answers, timeout=20, message="PgBouncer to answer")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def place(self):
        """What an alias must be given to go through it."""
        return {"HOST": str(self.folder), "PORT": "6432", "DISABLE_SERVER_SIDE_CURSORS": True}

    def _answers(self):
        assert self.process.poll() is None, "PgBouncer did not start"
        try:
            psycopg.connect(
                host=str(self.folder), port=6432, dbname=self.server["dbname"], user=self.server["user"]
            ).close()
        except psycopg.OperationalError:
            return False
        return True
