"""What succeeded, when and with which numbers, is noted for schedules and for types that declare what they expect."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs import at_least
from django_jobs import job as declare
from django_jobs.conf import get_settings
from django_jobs.ids import uuid7_at
from django_jobs.maintenance import observer as observer_module
from django_jobs.maintenance.observer import CATCHING_UP, Observer
from django_jobs.models import Bookmark, JobHistory, Schedule, ScheduleSlot, TypeRecord
from django_jobs.registry import registry
from tests.factories import JobHistoryFactory
from tests.operations.support import committing

pytestmark = committing


@pytest.fixture
def sync():
    before = dict(registry._by_name)

    @declare("sync", expect_success_within=timedelta(hours=1), expect={"rows": at_least(1)}, aliases=["old_sync"])
    def sync(): ...

    yield sync
    registry._by_name = before


@pytest.fixture
def observe():
    """Read on from ten seconds ago."""
    Bookmark.objects.create(name="observer", at=ago(seconds=10))
    observer = Observer(get_settings())

    def observe():
        return observer.run_once(None)

    observe.observer = observer
    return observe


def ago(**duration):
    return timezone.now() - timedelta(**duration)


def success(*, type="sync", metrics=None, status="succeeded", job_id=None, **duration):
    at = ago(**duration or {"seconds": 5})
    more = {"job_id": job_id} if job_id else {}
    return JobHistoryFactory(
        id=uuid7_at(at), type=type, status=status, finished_at=at, metrics=metrics, enqueued_at=at, **more
    )


def record():
    return TypeRecord.objects.get()


def test_a_type_that_expects_something_is_watched_from_now_on(sync, observe):
    observe()
    assert (record().type, record().last_success_at) == ("sync", None)
    assert abs(record().watched_since - timezone.now()) < timedelta(minutes=1)


def test_its_last_success_and_its_numbers_are_noted(sync, observe):
    success(metrics={"rows": 1}, seconds=8)
    last = success(type="old_sync", metrics={"rows": 2}, seconds=6)
    success(status="cancelled", metrics={"rows": 3}, seconds=4)
    success(type="other", metrics={"rows": 4}, seconds=4)
    assert observe() == 2
    assert (record().last_success_at, record().last_metrics) == (last.finished_at, {"rows": 2})
    assert record().usual_metrics == {}


def test_the_usual_value_is_the_median_of_the_last_twenty(sync, observe):
    for rows in [*range(100, 105), *[10] * 20]:
        success(metrics={"rows": rows}, seconds=9 - rows / 100)
    observe()
    assert len(record().recent_metrics) == 20
    for _ in range(3):
        observe()
    assert len(record().recent_metrics) == 20, "nothing counts twice, although a little is read twice"


def test_nothing_that_was_read_before_counts_again(sync, observe):
    for _ in range(5):
        success(metrics={"rows": 7})
    assert observe() == 5
    assert record().usual_metrics == {"rows": 7}
    assert observe() == 0
    success(metrics={"rows": 8}, seconds=2)
    assert observe() == 1


def test_a_row_that_was_committed_late_is_noted(sync, observe):
    observe()
    late = success(seconds=60)
    observe()
    assert record().last_success_at == late.finished_at


def test_the_history_is_read_in_bounded_slices(sync, observe):
    Bookmark.objects.update(at=ago(minutes=25))
    success(minutes=20)
    observe()
    assert observe.observer.pause == CATCHING_UP
    assert ago(minutes=16) < Bookmark.objects.get().at < ago(minutes=14)
    assert record().last_success_at is not None
    observe()
    observe()
    assert observe.observer.pause == get_settings().watch_every
    assert Bookmark.objects.get().at > ago(minutes=1)


def test_after_a_long_absence_it_does_not_begin_at_the_beginning(observe):
    Bookmark.objects.update(at=ago(days=300))
    observe()
    assert Bookmark.objects.get().at > ago(days=3)


def schedule(name="nightly", **changes):
    return Schedule.objects.create(name=name, type="noop", cron="0 3 * * *", **changes)


def slot(name, number, **history):
    done = success(type="noop", **history)
    ScheduleSlot.objects.create(schedule=name, slot=ago(days=number), outcome="fired", job_id=done.job_id)
    return done


def test_the_successes_of_a_schedule_are_those_of_the_jobs_it_fired(observe):
    schedule()
    schedule("other")
    success(type="noop", metrics={"rows": 1})
    last = slot("nightly", 1, metrics={"rows": 120})
    assert observe() == 1
    nightly = Schedule.objects.get(name="nightly")
    assert (nightly.last_success_at, nightly.last_metrics) == (last.finished_at, {"rows": 120})
    assert Schedule.objects.get(name="other").last_success_at is None


def test_the_usual_numbers_of_a_schedule_come_from_its_last_jobs(observe):
    schedule()
    for number in range(6):
        slot("nightly", number, metrics={"rows": 100 + number}, seconds=9 - number)
    observe()
    assert Schedule.objects.get().usual_metrics == {"rows": 102.5}


def test_the_usual_numbers_outlive_the_history(observe):
    """Of a weekly schedule there are never five successes in a month's history."""
    schedule()
    for number in range(6):
        slot("nightly", number, metrics={"rows": 100 + number})
        observe()
        JobHistory.objects.all().delete()
        ScheduleSlot.objects.all().delete()
    assert Schedule.objects.get().usual_metrics == {"rows": 102.5}


def test_of_runs_without_numbers_only_the_last_is_noted(observe):
    schedule()
    last = [slot("nightly", number, seconds=9 - number) for number in range(3)][-1]
    assert (observe(), observe()) == (1, 0)
    row = Schedule.objects.get()
    assert (row.last_success_at, row.recent_metrics, row.usual_metrics) == (last.finished_at, [], None)


def test_a_job_that_was_run_by_hand_counts_for_its_schedule(observe):
    schedule()
    done = success(type="noop")
    ScheduleSlot.objects.create(schedule="nightly", slot=ago(seconds=9), outcome="run_now", job_id=done.job_id)
    observe()
    assert Schedule.objects.get().last_success_at == done.finished_at


def test_an_older_success_does_not_replace_a_newer_one(observe):
    newer = timezone.now() + timedelta(minutes=1)
    schedule(last_success_at=newer)
    slot("nightly", 1)
    assert observe() == 0
    assert Schedule.objects.get().last_success_at == newer


def test_many_schedules_are_noted_in_batches(observe, monkeypatch, django_assert_max_num_queries):
    monkeypatch.setattr(observer_module, "BATCH", 10)
    for number in range(30):
        schedule(f"s{number}")
        slot(f"s{number}", 1)
    with django_assert_max_num_queries(25):
        assert observe() == 30
