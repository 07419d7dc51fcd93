"""A PostgreSQL of one's own, for the test run or for one test that wants to break it.

``postgres`` is a direct child of this process, listens on a Unix socket only, and does not sync to disk. It
runs as ``nobody`` when this process is root. It ends when the thread that started it ends, even by SIGKILL
(on Linux), so start it in the main thread. The folder of a killed test run is removed by the next start.

After an immediate stop the last commits may be missing, because ``synchronous_commit`` is off: a test about
crashes asks for ``PostgresServer(synchronous_commit="on")``.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

import psycopg

from tests.postgres_binaries import find_binaries, reachable_binaries
from tests.waiting import wait_for

StopMode = Literal["fast", "immediate"]

STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
FOLDER_PREFIX = "django-jobs-postgres-"
GUARDED_EXEC = Path(__file__).with_name("guarded_exec.py")
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
}

running_servers: set["PostgresServer"] = set()


class PostgresServer:
    """Start and stop by ``with``, or by ``start`` and ``stop``; ``halt`` and ``launch`` keep the data."""

    def __init__(self, **settings: str) -> None:
        self.settings = SETTINGS | settings
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self.process, "the server is not running"
        return self.process.pid

    @property
    def socket_dir(self) -> Path:
        return self.folder

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.socket_dir))}"

    @property
    def place(self) -> dict[str, Any]:
        """What an alias must be given to reach it."""
        return {"HOST": str(self.socket_dir), "NAME": "postgres"}

    def start(self) -> None:
        remove_abandoned_folders()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        try:
            self._create_cluster()
            self.launch()
        except BaseException:
            self.stop("immediate")
            raise

    def stop(self, mode: StopMode = "fast") -> None:
        self.halt(mode)
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self, mode: StopMode = "fast") -> None:
        self.halt(mode)
        self.launch()

    def launch(self) -> None:
        """Start ``postgres`` on the present data and wait until it answers."""
        options = [f"-c{name}={value}" for name, value in self.settings.items()]
        self.process = self._spawn("postgres", "-D", "data", "-k", str(self.socket_dir), *options)
        running_servers.add(self)
        wait_for(self._answers, timeout=30, message="PostgreSQL to answer")

    def halt(self, mode: StopMode = "fast") -> None:
        """End ``postgres``: open transactions are rolled back; ``immediate`` is a crash."""
        if self.process is None:
            return
        self.process.send_signal(STOP_SIGNALS[mode])
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        running_servers.discard(self)

    def _create_cluster(self) -> None:
        self.binaries = find_binaries()
        if os.geteuid() == 0:
            self.binaries = reachable_binaries(self.binaries, copy_to=self.folder / "copy")
            self._give_folder_to_nobody()
        options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        if self._spawn("initdb", "-D", "data", *options).wait() != 0:
            raise RuntimeError(f"initdb failed:\n{self.log}")

    def _give_folder_to_nobody(self) -> None:
        uid, gid = database_user()
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, uid, gid, follow_symlinks=False)

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        identity = map(str, (os.getpid(), *database_user()))
        command = [
            sys.executable,
            "-I",
            "-S",
            str(GUARDED_EXEC),
            *identity,
            str(self.binaries / program),
            *arguments,
        ]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"PostgreSQL did not start:\n{self.log}")
        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def database_user() -> tuple[int, int]:
    """The user and group that ``postgres`` runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return os.getuid(), os.getgid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def remove_abandoned_folders() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        owner = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        try:
            os.kill(int(owner), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (PermissionError, ValueError):
            continue
