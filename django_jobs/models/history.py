"""Finished jobs, one row each, never changed. On PostgreSQL partitioned by the day of ``id``."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from django_jobs.ids import uuid7


class FinalStatus(models.TextChoices):
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


class JobHistory(models.Model):
    """``id`` is the UUIDv7 of the finish by the database's clock, so ranges of ids are ranges of time."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    job_id = models.UUIDField(editable=False)
    type = models.CharField(max_length=200)
    queue = models.CharField(max_length=200)
    tenant = models.CharField(max_length=200, blank=True, db_default="")
    status = models.CharField(max_length=20, choices=FinalStatus)
    attempts = models.SmallIntegerField(db_default=0)
    enqueued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(db_default=Now())
    duration_ms = models.IntegerField(null=True, blank=True)
    worker = models.CharField(max_length=100, blank=True, db_default="")
    result = models.JSONField(null=True, blank=True)
    metrics = models.JSONField(null=True, blank=True)
    errors = models.JSONField(blank=True, db_default=models.Value([], output_field=models.JSONField()))

    class Meta:
        db_table = "django_jobs_job_history"
        verbose_name = _("finished job")
        verbose_name_plural = _("job history")
        default_permissions = ("view",)
        indexes = (models.Index(fields=["job_id"], name="django_jobs_history_job"),)

    def __str__(self) -> str:
        return f"{self.type} {self.job_id} {self.status}"
