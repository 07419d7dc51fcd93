"""The shop's nightly reports: declared in its code, fired for a slot, about the day before it."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from django_jobs.engines.values import ClaimedJob
from django_jobs.models import Job, Schedule
from django_jobs.models.schedule import Definition
from django_jobs.operations.declared_schedules import sync_schedules
from django_jobs.operations.firing import SetAside, fire_due
from django_jobs.registry import registry
from django_jobs.worker.running import Run, RunningJob

pytestmark = pytest.mark.usefixtures("shop")

SLOT = datetime(2026, 11, 1, 1, 30, tzinfo=UTC)
NAME = "nightly-stock-reports"


def fire():
    from testproject.shop import jobs  # noqa: F401 - declares

    sync_schedules()
    Schedule.objects.filter(pk=NAME).update(next_run_at=SLOT, planned=Definition())
    fire_due(SetAside())
    return Job.objects.get(type="shop.report_all_stock")


def run(job):
    claimed = ClaimedJob(
        id=job.pk,
        token=1,
        type=job.type,
        payload="{}",
        queue=job.queue,
        priority=0,
        tenant="",
        attempt=1,
        max_attempts=3,
        lost_runs=0,
        context=json.dumps(job.context),
        given_up=False,
    )
    job_type = registry.get(job.type)
    job_type.handler(RunningJob(Run(claimed, job_type)))


def test_each_store_is_reported_about_the_day_before_the_slot():
    from testproject.shop.models import Product

    for store in ("north", "south"):
        Product.objects.create(store=store, sku="MUG", name="Mug", price="7.90", stock=5)
    job = fire()
    run(job)
    reports = Job.objects.filter(type="shop.report_stock").order_by("payload__store")
    slot = datetime.fromisoformat(job.context["django_jobs.slot"]).astimezone(ZoneInfo("Europe/Berlin"))
    day = (slot.date() - timedelta(days=1)).isoformat()
    assert list(reports.values_list("payload", flat=True)) == [
        {"store": "north", "day": day},
        {"store": "south", "day": day},
    ]
