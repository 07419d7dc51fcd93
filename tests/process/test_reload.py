"""``--reload``: a module that changes replaces the worker; what runs is not lost."""

import signal

from django_jobs import get_job
from tests.app.jobs import hold
from tests.app.models import Mark
from tests.processes import is_running
from tests.waiting import wait_for

MODULE = """
from django_jobs import job
from tests.app.jobs import leave_mark


@job("changing")
def changing():
    leave_mark("{label}")
"""


def write(folder, label):
    (folder / "changing_handlers.py").write_text(MODULE.format(label=label))


def enqueue_changing():
    """The type is known to the worker, and not here."""
    from tests.factories import JobFactory

    return JobFactory(type="changing")


def test_a_touched_module_replaces_the_worker_and_loses_no_running_job(
    start_supervisor, monkeypatch, tmp_path_factory, gate, wait_for_marks
):
    folder = tmp_path_factory.mktemp("project")
    write(folder, "before")
    monkeypatch.setenv("TEST_MORE_HANDLERS", str(folder))
    supervisor = start_supervisor(1, "--reload", "--concurrency", "2")
    (first,) = supervisor.workers()
    enqueue_changing()
    wait_for_marks("before")
    held = hold.enqueue(label="a", until=str(gate))
    wait_for_marks("a started")
    write(folder, "after, and longer")
    supervisor.wait_for_workers(1, besides=[first])
    supervisor.wait_for_output("changing_handlers.py changed")
    enqueue_changing()
    wait_for_marks("after, and longer")
    gate.touch()
    wait_for(lambda: get_job(held.id).status == "succeeded")
    assert get_job(held.id).attempts == 1
    wait_for(lambda: not is_running(first), timeout=20)
    supervisor.send(signal.SIGINT)
    assert supervisor.wait() == 0, supervisor.output
    assert "signal only works in main thread" not in supervisor.output
    assert "ValueError" not in supervisor.output


def test_a_module_that_does_not_import_is_tried_again_until_it_does(
    start_supervisor, monkeypatch, tmp_path_factory, wait_for_marks
):
    folder = tmp_path_factory.mktemp("project")
    write(folder, "before")
    monkeypatch.setenv("TEST_MORE_HANDLERS", str(folder))
    supervisor = start_supervisor(1, "--reload")
    (folder / "changing_handlers.py").write_text("this is no Python, and longer than before")
    supervisor.wait_for_output("SyntaxError")
    assert supervisor.popen.poll() is None
    write(folder, "mended")
    enqueue_changing()
    wait_for_marks("mended", timeout=40)
    assert not Mark.objects.filter(label="before").exists()
