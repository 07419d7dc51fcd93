"""The dead-letter table: jobs that will not run again unless an operator says so. Kept until handled."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from django_jobs.outcomes import DeadReason

from .envelope import Envelope

REASONS = [(reason.value, reason.name.replace("_", " ").title()) for reason in DeadReason]


class DeadJob(Envelope):
    """``fingerprint`` is the same for failures that differ only in ids, numbers and the like."""

    failed_at = models.DateTimeField(db_default=Now())
    reason = models.CharField(max_length=20, choices=REASONS)
    error_type = models.CharField(max_length=200, blank=True, db_default="")
    error_summary = models.CharField(max_length=200, blank=True, db_default="")
    fingerprint = models.CharField(max_length=40, blank=True, db_default="")

    class Meta:
        db_table = "django_jobs_dead_job"
        verbose_name = _("dead job")
        verbose_name_plural = _("dead jobs")
        default_permissions = ("view",)
        permissions = (("retry_deadjob", "Can retry dead jobs"), ("discard_deadjob", "Can discard dead jobs"))
        indexes = (
            models.Index(fields=["type", "fingerprint", "failed_at"], name="django_jobs_dead_job_group"),
            models.Index(fields=["failed_at", "id"], name="django_jobs_dead_job_time"),
        )
