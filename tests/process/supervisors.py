"""A supervisor and its worker processes, as a test sees them."""

import os

from django_jobs.models import Worker
from tests.process.command import WorkerCommand
from tests.processes import children_of, is_running
from tests.waiting import wait_for


class SupervisorCommand(WorkerCommand):
    """Its children live in sessions of their own, so ``end()`` looks after each."""

    def __init__(self, folder, *arguments, **options):
        self.seen = set()
        super().__init__(folder, *arguments, **options)

    def workers(self):
        """The pids of its worker processes that take jobs now."""
        children = children_of(self.pid)
        self.seen |= children
        rows = Worker.objects.filter(pid__in=children, stopped_at=None)
        return set(rows.values_list("pid", flat=True))

    def wait_for_workers(self, number, besides=(), timeout=40):
        def enough():
            assert self.popen.poll() is None, self.output
            fresh = self.workers() - set(besides)
            return fresh if len(fresh) >= number else None

        return wait_for(enough, timeout, f"{number} workers of supervisor {self.pid}:\n{self.output}")

    def end(self):
        """Children end when their supervisor does; those that cannot are killed."""
        self.seen |= children_of(self.pid)
        super().end()
        try:
            wait_for(lambda: not any(map(is_running, self.seen)), timeout=15)
        except AssertionError:
            for pid in filter(is_running, self.seen):
                os.kill(pid, 9)
            wait_for(lambda: not any(map(is_running, self.seen)))
