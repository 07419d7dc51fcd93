"""The dead-letter table: jobs that will not run again unless an operator says so. Kept until handled."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from .envelope import Envelope


class DeadReason(models.TextChoices):
    EXHAUSTED = "exhausted"
    BURIED_BY_HANDLER = "buried_by_handler"
    WORKER_LOST = "worker_lost"
    TIMEOUT = "timeout"
    NO_HANDLER = "no_handler"
    BAD_PAYLOAD = "bad_payload"
    UNRECORDABLE = "unrecordable"


class DeadJob(Envelope):
    """``fingerprint`` is the same for failures that differ only in ids, numbers and the like."""

    failed_at = models.DateTimeField(db_default=Now())
    reason = models.CharField(max_length=20, choices=DeadReason)
    error_type = models.CharField(max_length=200, blank=True, db_default="")
    error_summary = models.CharField(max_length=200, blank=True, db_default="")
    fingerprint = models.CharField(max_length=40, blank=True, db_default="")

    class Meta:
        db_table = "django_jobs_dead_job"
        verbose_name = "dead job"
        default_permissions = ("view",)
        permissions = (("retry_deadjob", "Can retry dead jobs"), ("discard_deadjob", "Can discard dead jobs"))
        indexes = (
            models.Index(fields=["type", "fingerprint", "failed_at"], name="django_jobs_dead_job_group"),
            models.Index(fields=["failed_at", "id"], name="django_jobs_dead_job_time"),
        )
