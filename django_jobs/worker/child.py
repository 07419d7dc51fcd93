"""A worker process as its supervisor sees it: spawned, listened to, told, and buried."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django_jobs import clock

from .channel import Channel
from .death import cause_of_death
from .ledger import Ledger, shared_memory
from .relaunch import command_line, environment


class Child:
    """``worker`` is empty until it has introduced itself: from then on it may hold leases."""

    def __init__(self, options: Sequence[str]) -> None:
        memory = shared_memory()
        try:
            self.ledger = Ledger(os.dup(memory))
            self._channel, theirs = Channel.pair()
            with theirs:
                self._popen = self._spawned(options, theirs.fileno(), memory)
        finally:
            os.close(memory)
        self.born_at = clock.monotonic()
        self.worker = ""
        self.state: dict[str, Any] = {}
        self.silent_for = 0.0
        self._killed_because = ""

    def _spawned(self, options: Sequence[str], *inherited: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603
                command_line(*options, "--supervised", ",".join(map(str, (*inherited, clock.milliseconds())))),
                env=environment(),
                pass_fds=inherited,
                stdin=subprocess.DEVNULL,
                # What a terminal sends to its foreground group is the supervisor's to forward.
                start_new_session=True,
            )
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def age(self) -> float:
        return clock.monotonic() - self.born_at

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def listens(self) -> bool:
        return self._channel.open

    def listen(self) -> None:
        """Take what it has said. What it said last counts."""
        while self._channel.open and (messages := self._channel.receive(0)):
            self.silent_for = 0.0
            for message in messages:
                self.state |= message
        self.worker = str(self.state.get("worker", ""))

    def tell(self, **message: Any) -> None:
        self._channel.send(**message)

    def kill(self, because: str) -> None:
        self._killed_because = self._killed_because or because
        with suppress(ProcessLookupError):
            self._popen.kill()

    def has_ended(self) -> bool:
        """Reaps it."""
        if self._popen.poll() is None:
            return False
        self.listen()
        return True

    @property
    def returncode(self) -> int:
        return int(self._popen.returncode)

    @property
    def ended_in_order(self) -> bool:
        """Did it say that it had finished, and then end? A handler may end its process with 0 as well."""
        return self.returncode == 0 and "ended" in self.state

    @property
    def cause(self) -> str:
        """How it died, in words."""
        cause = f"worker died: {cause_of_death(self.returncode)}"
        return f"{cause}, {self._killed_because}" if self._killed_because else cause

    def close(self) -> None:
        self._channel.close()
        self.ledger.close()


def reap_strangers(known: set[int]) -> None:
    """As process 1 of a container, also take leave of the dead that nobody else waits for."""
    with suppress(ChildProcessError):
        while (seen := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and seen.si_pid not in known:
            os.waitpid(seen.si_pid, 0)
