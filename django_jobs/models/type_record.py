"""How the job types fared that declare what they expect. Kept by the observer, from the history."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class TypeRecord(models.Model):
    """``watched_since``: when the type first declared an expectation. ``recent_metrics``: of the last 20 successes."""

    type = models.CharField(max_length=200, primary_key=True)
    watched_since = models.DateTimeField(db_default=Now())
    last_success_at = models.DateTimeField(null=True, blank=True)
    last_metrics = models.JSONField(null=True, blank=True)
    usual_metrics = models.JSONField(null=True, blank=True)
    recent_metrics = models.JSONField(
        blank=True, default=list, db_default=models.Value([], output_field=models.JSONField())
    )

    class Meta:
        db_table = "django_jobs_type_record"
        verbose_name = "record of a job type"
        verbose_name_plural = "records of job types"

    def __str__(self) -> str:
        return self.type
