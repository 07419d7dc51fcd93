"""Workers that run in a thread of the test, with real connections: to be watched, or to drain the queues."""

import threading
from contextlib import contextmanager
from datetime import timedelta

from django.db import connections

from django_jobs.worker.process import WorkerOptions, WorkerProcess
from django_jobs.worker.queue_list import parse_queues
from tests.waiting import wait_for


class EmbeddedWorker:
    """``stop()`` asks it to end, a second time at once; ``join()`` returns its exit code."""

    def __init__(self, *, queues="", concurrency=None, drain=None, maintenance=True, **options):
        self.process = WorkerProcess(
            WorkerOptions(
                groups=parse_queues(queues, concurrency),
                drain=drain,
                maintenance=maintenance,
                **options,
            )
        )
        self.code = None
        self.thread = threading.Thread(target=self._serve, name="worker under test")

    def _serve(self):
        try:
            self.code = self.process.run()
        finally:
            connections.close_all()

    def start(self):
        self.thread.start()

    def stop(self):
        self.process.stop()

    def join(self, timeout=60):
        self.thread.join(timeout)
        assert not self.thread.is_alive(), "the worker has not ended"
        return self.code

    def wait_for_turns(self, number):
        pulse = self.process.pulses["loop"]
        before = pulse._beats
        wait_for(lambda: pulse._beats >= before + 2 * number, message=f"{number} turns of the loop")

    @property
    def alive(self):
        return self.thread.is_alive()

    @property
    def posture(self):
        return self.process.loop.sleeper.posture.value


@contextmanager
def running_worker(**options):
    """A worker for the time of the block. Stopped gracefully at its end, and at once when the block failed."""
    worker = EmbeddedWorker(**options)
    worker.start()
    try:
        yield worker
    except BaseException:
        worker.stop()
        raise
    finally:
        worker.stop()
        worker.join()


def drain(*, horizon=5.0, timeout=60, **options):
    """Run a worker until nothing is left within ``horizon`` seconds; returns its exit code."""
    worker = EmbeddedWorker(drain=timedelta(seconds=horizon), **options)
    worker.start()
    try:
        return worker.join(timeout)
    except BaseException:
        worker.stop()
        worker.stop()
        raise
