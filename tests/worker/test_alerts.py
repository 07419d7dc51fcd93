"""Silence is heard: a running worker notes what succeeded, opens an alert, tells, and resolves it."""

import threading
from datetime import timedelta

from django.db.models import F

from django_jobs import Actor, DeadFilter, RunningJob, at_least, get_bulk, start_bulk
from django_jobs.models import Alert, TypeRecord
from tests.waiting import wait_for
from tests.worker.embedded import running_worker

NOTIFIED = []
HANGING, LET_GO = threading.Event(), threading.Event()


def notify(event):
    NOTIFIED.append((event.kind, event.condition, event.subject))


def hang(event):
    HANGING.set()
    LET_GO.wait(60)


def test_a_notifier_that_hangs_holds_up_neither_the_looking_nor_any_other_service(job, configure):
    @job("sync", expect_success_within=timedelta(hours=1))
    def sync(): ...

    HANGING.clear()
    LET_GO.clear()
    configure(WATCH_EVERY=0.05, ALERT_CALM=0, NOTIFIERS=[f"{__name__}.hang"])
    Alert.objects.create(condition="trouble", subject="x", severity="error")
    try:
        with running_worker():
            assert HANGING.wait(30)
            wait_for(TypeRecord.objects.exists)
            TypeRecord.objects.update(watched_since=F("watched_since") - timedelta(hours=2))
            wait_for(Alert.objects.filter(condition="overdue_success").exists)
            bulk = start_bulk("retry", DeadFilter(), actor=Actor(name="ada", source="code"))
            wait_for(lambda: get_bulk(bulk.id).is_over)
            LET_GO.set()
    finally:
        LET_GO.set()


def test_a_silent_type_is_told_and_its_next_success_ends_the_alert(job, configure):
    @job("sync", expect_success_within=timedelta(hours=1), expect={"rows": at_least(1)})
    def sync(run: RunningJob, rows: int):
        run.report(rows=rows)

    NOTIFIED.clear()
    configure(WATCH_EVERY=0.05, ALERT_CALM=0, NOTIFIERS=[f"{__name__}.notify"])
    with running_worker():
        wait_for(TypeRecord.objects.exists)
        TypeRecord.objects.update(watched_since=F("watched_since") - timedelta(hours=2))
        wait_for(lambda: ("opened", "overdue_success", "type sync") in NOTIFIED, timeout=60)
        sync.enqueue(rows=0)
        wait_for(lambda: ("resolved", "overdue_success", "type sync") in NOTIFIED, timeout=60)
        wait_for(lambda: ("opened", "unexpected_metrics", "type sync") in NOTIFIED, timeout=60)
        sync.enqueue(rows=7)
        wait_for(lambda: ("resolved", "unexpected_metrics", "type sync") in NOTIFIED, timeout=60)
    assert TypeRecord.objects.get().last_metrics == {"rows": 7}
    assert set(Alert.objects.values_list("state", flat=True)) == {"resolved"}
