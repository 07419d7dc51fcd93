"""The columns that a job keeps wherever it is: in the hot table and among the dead."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from django_jobs.ids import uuid7


class JobStatus(models.TextChoices):
    SCHEDULED = "scheduled"
    PENDING = "pending"
    PROCESSING = "processing"


class Envelope(models.Model):
    """``errors`` holds the first 2 and the last 8 failed attempts; ``context`` is the enqueuer's (request id,
    trace parent, …).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    queue = models.CharField(max_length=200)
    type = models.CharField(max_length=200)
    payload = models.JSONField()
    priority = models.SmallIntegerField(db_default=0)
    tenant = models.CharField(max_length=200, blank=True, db_default="")
    run_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())
    attempts = models.SmallIntegerField(db_default=0)
    max_attempts = models.SmallIntegerField()
    lost_runs = models.SmallIntegerField(db_default=0)
    untaken_since = models.DateTimeField(null=True, blank=True)
    idempotency_key = models.CharField(max_length=255, blank=True, db_default="")
    last_error = models.TextField(blank=True, db_default="")
    errors = models.JSONField(blank=True, db_default=models.Value([], output_field=models.JSONField()))
    context = models.JSONField(blank=True, db_default=models.Value({}, output_field=models.JSONField()))
    progress = models.JSONField(null=True, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.type} {self.id}"
