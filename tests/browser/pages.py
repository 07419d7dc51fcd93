"""Every page there is, with something on it."""

from django.urls import reverse

from django_jobs.models import BulkOperation, DeadJob, Job, JobHistory, Schedule
from django_jobs.operations.audit import Actor
from django_jobs.operations.bulk import start_bulk
from django_jobs.operations.dead_filter import DeadFilter

LISTS = ("job", "deadjob", "jobhistory", "schedule", "queue", "worker", "alert", "bulkoperation", "auditentry")


def url(page, /, *args, **query):
    return reverse(f"admin:django_jobs_{page}", args=args, query=query or None)


def every_page():
    """Name and path of each page, for the rows there are."""
    dead, live, done = DeadJob.objects.first(), Job.objects.first(), JobHistory.objects.first()
    yield "overview", url("job_overview")
    yield from ((f"{name} list", url(f"{name}_changelist")) for name in LISTS)
    yield "groups", url("deadjob_groups")
    yield "group", url("deadjob_group", type=dead.type, fingerprint=dead.fingerprint)
    yield "dead job", url("job_change", dead.pk)
    yield "live job", url("job_change", live.pk)
    yield "finished job", url("job_change", done.job_id)
    yield "bulk operation", url("bulkoperation_change", BulkOperation.objects.first().pk)
    yield "schedule", url("schedule_one", name=Schedule.objects.first().pk)
    yield "schedule form", url("schedule_form")


def start_an_operation():
    return start_bulk("retry", DeadFilter(reason="timeout"), actor=Actor(name="ada", source="admin"), canary=3)
