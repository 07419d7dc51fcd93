"""Alerts: what the watcher found to be wrong, from when to when, and who was told."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from django_jobs.ids import uuid7


class AlertState(models.TextChoices):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class Severity(models.TextChoices):
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Alert(models.Model):
    """Of one condition about one subject at most one is live.

    ``last_seen_at``: when the condition held last. ``notified``: by notifier, which events it was given and how the
    last try failed. ``notify_at``: when the next try is due; empty when everybody knows.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    condition = models.CharField(max_length=50)
    subject = models.CharField(max_length=300)
    severity = models.CharField(max_length=10, choices=Severity)
    state = models.CharField(max_length=20, choices=AlertState, default=AlertState.OPEN, db_default=AlertState.OPEN)
    summary = models.CharField(max_length=500)
    details = models.JSONField(blank=True, default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    opened_at = models.DateTimeField(db_default=Now())
    last_seen_at = models.DateTimeField(db_default=Now())
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=200, blank=True, db_default="")
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.CharField(max_length=200, blank=True, db_default="")
    notified = models.JSONField(blank=True, default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    notify_at = models.DateTimeField(null=True, blank=True, db_default=Now())

    class Meta:
        db_table = "django_jobs_alert"
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        constraints = (
            models.UniqueConstraint(
                fields=["condition", "subject"],
                condition=~models.Q(state=AlertState.RESOLVED),
                name="django_jobs_alert_live",
            ),
        )
        indexes = (
            models.Index(
                fields=["notify_at"], condition=models.Q(notify_at__isnull=False), name="django_jobs_alert_notify"
            ),
            models.Index(
                fields=["resolved_at"], condition=models.Q(state=AlertState.RESOLVED), name="django_jobs_alert_resolved"
            ),
        )

    def __str__(self) -> str:
        return f"{self.condition}: {self.subject}"
