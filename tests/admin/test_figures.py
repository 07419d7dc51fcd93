"""What overview, queues and workers tell is what there is."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import DeadJobFactory, JobCountFactory, JobFactory, QueueFactory, WorkerFactory

from .support import page, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return timezone.now()


@pytest.fixture
def busy(now):
    """Queue ``bulk``: 3 ready, of which the oldest waits for ten minutes, 2 scheduled, 1 running."""
    JobFactory.create_many(2, queue="bulk", run_at=now - timedelta(minutes=1))
    JobFactory(queue="bulk", priority=-5, run_at=now - timedelta(minutes=10))
    JobFactory.create_many(2, queue="bulk", scheduled=True)
    JobFactory(queue="bulk", processing=True)
    JobCountFactory(queue="bulk", count=40)
    JobCountFactory(queue="bulk", count=10, outcome="dead")
    JobCountFactory(queue="default", count=7, minute=now.replace(second=0, microsecond=0) - timedelta(minutes=90))


def row_of(client, queue):
    response = client.get(url("queue_changelist"))
    return next(row for row in response.context["queues"] if row.name == queue)


def test_a_queue_tells_its_depth_its_oldest_wait_and_its_throughput(boss, busy, now):
    row = row_of(boss, "bulk")
    assert (row.figures.ready, row.figures.scheduled, row.figures.running) == (3, 2, 1)
    assert row.figures.oldest == now - timedelta(minutes=10)
    assert sum(row.ended) == 50
    assert sum(row_of(boss, "default").ended) == 0
    text = page(boss, "queue_changelist")
    assert re.search(r">10 min( \d+ s)?<", text)
    assert "Ended runs by minute: 50 in all, at most 50" in text


def test_a_queue_tells_who_serves_it_and_until_when_it_is_paused(boss, busy, now):
    WorkerFactory.create_batch(2, queues=[{"queues": ["bulk", "default"], "slots": 5}])
    WorkerFactory(queues=[{"queues": ["bulk"], "slots": 5}], last_seen_at=now - timedelta(hours=1))
    QueueFactory(name="bulk", paused=True, resume_at=now + timedelta(hours=2))
    row = row_of(boss, "bulk")
    assert (row.served_by, row.resume_at) == (2, now + timedelta(hours=2))
    assert row_of(boss, "urgent").served_by == 0
    assert "nobody serves it" in page(boss, "queue_changelist")


def test_the_overview_adds_up(boss, busy):
    WorkerFactory(running=4, queues=[{"queues": ["bulk"], "slots": 5}])
    DeadJobFactory.create_many(6)
    shown = boss.get(url("job_overview")).context
    assert (len(shown["workers"]), shown["running"]) == (1, 4)
    assert (shown["ready"], shown["scheduled"], shown["dead"]) == (3, 2, 6)
    assert (shown["ended"].good, shown["ended"].bad, shown["ended"].failure_share) == (40, 10, 0.2)


def test_the_chart_is_told_to_those_who_do_not_see_it(boss, busy):
    text = page(boss, "job_overview")
    assert 'role="img" aria-label="Ended runs by minute: 40 succeeded, 10 failed"' in text
    table = text[text.index("As a table") :]
    assert re.search(r'<td class="dj-num">40</td><td class="dj-num">10</td>', table)


def test_a_worker_is_alive_silent_or_stopped(boss, now):
    queues = [{"queues": ["urgent"], "slots": 2}, {"queues": ["default", "bulk"], "slots": 10}]
    WorkerFactory(host="alive.example", queues=queues, running=3)
    WorkerFactory(host="lost.example", last_seen_at=now - timedelta(minutes=5))
    WorkerFactory(host="stopped.example", stopped_at=now - timedelta(minutes=5))
    WorkerFactory(host="forgotten.example", last_seen_at=now - timedelta(days=3))
    response = boss.get(url("worker_changelist"))
    found = {worker.host: (state, groups) for worker, state, groups in response.context["workers"]}
    assert {host: state for host, (state, _) in found.items()} == {
        "alive.example": "alive",
        "lost.example": "lost",
        "stopped.example": "stopped",
    }
    assert found["alive.example"][1] == [("urgent", 2), ("default, bulk", 10)]
    assert "1 worker was seen in the last minute." in response.content.decode()


def test_without_a_worker_the_page_says_how_to_start_one(boss):
    assert "manage.py runjobworker" in page(boss, "worker_changelist")
