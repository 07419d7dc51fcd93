"""Silence is heard: a running worker notes what succeeded, opens an alert, tells, and resolves it."""

from datetime import timedelta

from django.db.models import F

from django_jobs import RunningJob, at_least
from django_jobs.models import Alert, TypeRecord
from tests.waiting import wait_for
from tests.worker.embedded import running_worker

NOTIFIED = []


def notify(event):
    NOTIFIED.append((event.kind, event.condition, event.subject))


def test_a_silent_type_is_told_and_its_next_success_ends_the_alert(job, configure):
    @job("sync", expect_success_within=timedelta(hours=1), expect={"rows": at_least(1)})
    def sync(run: RunningJob, rows: int):
        run.report(rows=rows)

    NOTIFIED.clear()
    configure(WATCH_EVERY=0.05, ALERT_CALM=0, NOTIFIERS=[f"{__name__}.notify"])
    with running_worker():
        wait_for(TypeRecord.objects.exists)
        TypeRecord.objects.update(watched_since=F("watched_since") - timedelta(hours=2))
        wait_for(lambda: ("opened", "overdue_success", "type sync") in NOTIFIED)
        sync.enqueue(rows=0)
        wait_for(lambda: ("resolved", "overdue_success", "type sync") in NOTIFIED)
        wait_for(lambda: ("opened", "unexpected_metrics", "type sync") in NOTIFIED)
        sync.enqueue(rows=7)
        wait_for(lambda: ("resolved", "unexpected_metrics", "type sync") in NOTIFIED)
    assert TypeRecord.objects.get().last_metrics == {"rows": 7}
    assert set(Alert.objects.values_list("state", flat=True)) == {"resolved"}
