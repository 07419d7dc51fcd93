"""The process that runs handlers with ``isolation="process"``: one run at a time, in its main thread.

Its worker may kill it at any moment: at the run's time-out, or to end. When the worker is gone, it ends itself.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import connections

from django_jobs import clock
from django_jobs.registry import registry

from .channel import Channel, Message
from .executor import Executor
from .handover import decode_job, encode_ending
from .hygiene import close_connections
from .running import Run
from .signals import STOP_SIGNALS, handling

EXIT_ORPHANED = 1
PR_SET_PDEATHSIG = 1
TELL_SECONDS = 0.5
ASK_SECONDS = 1.0


def serve_isolated_runs(channel: Channel) -> None:
    """Until the worker closes the channel. Needs the main thread."""
    _die_with_parent()
    # A group's or a terminal's signal is the worker's to hear. Handlers, unlike SIG_IGN, end with an exec.
    with handling({number: lambda *_: None for number in STOP_SIGNALS}):
        IsolatedRuns(channel).serve()


def _die_with_parent() -> None:
    """Also in native code that lets no other thread notice that the worker is gone. Linux only."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class IsolatedRuns:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._orders: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._run: Run | None = None
        self._told: Message = {}
        self._clock = clock.DatabaseClock()
        self._sending = threading.Lock()
        self._executor = Executor(self._clock.milliseconds, lambda: threading.Event().wait(ASK_SECONDS))

    def serve(self) -> None:
        threading.Thread(target=self._listen, name="django_jobs listener", daemon=True).start()
        threading.Thread(target=self._report, name="django_jobs reporter", daemon=True).start()
        self._send(ready=True)
        while order := self._orders.get():
            self._send(ended=self._run_one(order))
        close_connections()

    def _run_one(self, order: Message) -> dict[str, Any]:
        _use_databases(order["databases"])
        self._clock.sample(clock.now() + timedelta(seconds=order["clock_ahead"]))
        job = decode_job(order["job"])
        run = Run(job, registry.find(job.type))
        run.start()
        self._run = run
        self._pass_on()
        ended = self._executor.run(run, rested=True)
        self._tell_news(run)
        self._run = None
        return encode_ending(ended)

    def _listen(self) -> None:
        while self._channel.open:
            for message in self._channel.receive(None):
                self._take(message)
        # No run may go on that nobody waits for.
        os._exit(EXIT_ORPHANED)

    def _take(self, message: Message) -> None:
        if "job" in message or message.get("end"):
            self._orders.put({} if message.get("end") else message)
        else:
            self._told = message
            self._pass_on()

    def _pass_on(self) -> None:
        """What the worker told last, to the run that it is about. It may come before the run has begun."""
        run, told = self._run, self._told
        if run is not None and told.get("token") == run.job.token:
            run.cancelled = run.cancelled or bool(told.get("cancelled"))
            run.lost = run.lost or bool(told.get("lost"))

    def _report(self) -> None:
        """Pass on what the handler reports, from time to time."""
        pause = threading.Event()
        while not pause.wait(TELL_SECONDS):
            if (run := self._run) is not None:
                self._tell_news(run)

    def _tell_news(self, run: Run) -> None:
        progress = run.progress
        if progress is not run.shown:
            run.shown = progress
            self._send(token=run.job.token, progress=progress)

    def _send(self, **message: Any) -> None:
        with self._sending:
            self._channel.send(**message)


def _use_databases(names: dict[str, str]) -> None:
    """Those that the worker uses: in a test run they are not the ones that the settings name."""
    for alias, name in names.items():
        settings = connections[alias].settings_dict
        if str(settings["NAME"]) != name:
            connections[alias].close()
            settings["NAME"] = name
