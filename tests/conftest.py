import os
import threading
from pathlib import Path

import pytest

from tests.postgres_server import running_servers
from tests.processes import children_of
from tests.waiting import wait_for

HERE = Path(__file__).parent
COMMITTING = {HERE / name for name in ("engines", "maintenance", "process", "worker")}
APPS = ["django_jobs", "tests.app"]


def pytest_collection_modifyitems(items):
    """After a test that commits, empty the tables of these apps only: to make the content types and permissions anew
    each time takes longer than most tests.
    """
    for item in items:
        if item.path.parent in COMMITTING:
            marker = item.get_closest_marker("django_db")
            arguments = {"available_apps": APPS} | (marker.kwargs if marker else {})
            if arguments.get("transaction") or "transactional_db" in item.fixturenames:
                item.add_marker(pytest.mark.django_db(**arguments), append=False)


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
