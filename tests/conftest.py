import os
import threading

import pytest

from tests.postgres_server import running_servers
from tests.processes import children_of
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def nothing_outlives_its_test():
    threads, processes = current_threads(), current_processes()
    yield
    left_over = set()

    def nothing_is_left():
        left_over.clear()
        left_over.update(current_threads() - threads, current_processes() - processes)
        return not left_over

    try:
        wait_for(nothing_is_left, timeout=10)
    except AssertionError:
        pytest.fail(f"outlived the test: {left_over}", pytrace=False)


def current_threads():
    """Threads that count: those of the package, and all that would keep the process from ending.

    The pool that asgiref keeps for ``sync_to_async`` has the standard library's name and does not count.
    """
    return {
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("django_jobs") or not (thread.daemon or thread.name.startswith("ThreadPoolExecutor-"))
    }


def current_processes():
    return children_of(os.getpid()) - {server.pid for server in running_servers}
