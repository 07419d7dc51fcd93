"""What maintenance does for triage: it carries bulk operations out and adds groups up, and neither stops the other."""

import pytest

from django_jobs import DeadFilter, dead_groups, get_bulk, start_bulk
from django_jobs.maintenance import bulk_runner, dead_group_folder
from django_jobs.maintenance.bulk_runner import BulkRunner
from django_jobs.maintenance.dead_group_folder import DeadGroupFolder
from django_jobs.models import BulkOperation, DeadGroup, DeadGroupChange
from django_jobs.operations import bulk_step as step_module
from tests.operations.support import committing
from tests.operations.triage import ANNA, die, no_changes, retry_all, whereabouts
from tests.waiting import wait_for
from tests.worker.embedded import running_worker

pytestmark = [committing, pytest.mark.usefixtures("no_changes")]
__all__ = ["no_changes"]


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.setattr(step_module, "BATCH", 10)
    return BulkRunner("default")


def test_a_turn_does_one_batch_of_each_operation_and_comes_again_soon(runner):
    die(15, type="a")
    die(15, type="b")
    both = [retry_all(DeadFilter(type=name, fingerprint="1:0123456789abcdef")) for name in "ab"]
    assert runner.run_once(None) == 2
    assert [get_bulk(info.id).done for info in both] == [10, 10]
    assert runner.pause == bulk_runner.BUSY
    runner.run_once(None)
    assert [get_bulk(info.id).state for info in both] == ["done", "done"]
    assert runner.run_once(None) == 0
    assert runner.pause is None, "until there is something to do"


def test_an_operation_that_fails_is_logged_and_the_others_go_on(runner, monkeypatch, caplog):
    die(5)
    broken, fine = retry_all(), start_bulk("discard", DeadFilter(), actor=ANNA)
    run = step_module._Step.run

    def run_or_fail(self):
        if self._row.id == broken.id:
            raise RuntimeError("no such luck")
        return run(self)

    monkeypatch.setattr(step_module._Step, "run", run_or_fail)
    assert runner.run_once(None) == 2
    assert (get_bulk(fine.id).state, get_bulk(fine.id).done) == ("done", 5)
    assert get_bulk(broken.id).error == "RuntimeError: no such luck"
    assert str(broken.id) in caplog.text
    assert runner.pause == bulk_runner.SPREADING


def test_an_operation_without_work_yet_does_not_keep_the_runner_busy(runner):
    from datetime import timedelta

    die(10)
    info = retry_all(spread=timedelta(hours=10))
    runner.run_once(None)
    runner.run_once(None)
    assert get_bulk(info.id).state == "running"
    assert runner.pause == bulk_runner.SPREADING


def test_changes_are_added_up_and_a_full_turn_comes_again_soon(monkeypatch):
    folder = DeadGroupFolder("default")
    monkeypatch.setattr("django_jobs.operations.dead_group_counts.BATCH", 450)
    die(500)
    assert folder.run_once(None) == 450
    assert folder.pause == dead_group_folder.BUSY
    assert folder.run_once(None) == 50
    assert folder.pause is None
    assert (DeadGroup.objects.get().count, DeadGroupChange.objects.count()) == (500, 0)


def test_a_worker_carries_an_operation_out_while_its_queue_is_paused():
    from django_jobs import pause

    die(1200, type="operations.note")
    pause("default")
    info = retry_all()
    with running_worker():
        wait_for(lambda: get_bulk(info.id).is_over, timeout=60)
        wait_for(lambda: not DeadGroupChange.objects.exists(), timeout=60)
    assert (get_bulk(info.id).done, whereabouts()["Job"]) == (1200, 1200)
    assert dead_groups().groups == ()
    assert BulkOperation.objects.get().error == ""
