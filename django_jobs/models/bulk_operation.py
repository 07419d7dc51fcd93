"""Many dead jobs, one decision: what to do with which of them, and how far that is."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from django_jobs.ids import uuid7


class BulkKind(models.TextChoices):
    RETRY = "retry"
    DISCARD = "discard"


class BulkState(models.TextChoices):
    RUNNING = "running"
    CANARY = "canary"
    DONE = "done"
    ABORTED = "aborted"


class BulkOperation(models.Model):
    """``running``: maintenance moves jobs. ``canary``: the first few are moved; somebody has to confirm the rest.

    ``filter``: as DeadFilter writes it. Only jobs that died up to ``snapshot_at`` are touched. ``cursor_at`` and
    ``cursor_id``: the last dead job, in the order of (failed_at, id), that was looked at. ``error``: why its last
    batch failed; empty again when one succeeds.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=20, choices=BulkKind)
    filter = models.JSONField()
    state = models.CharField(max_length=20, choices=BulkState, db_default=BulkState.RUNNING)
    requested_by = models.CharField(max_length=200, blank=True, db_default="")
    actor_id = models.CharField(max_length=200, blank=True, db_default="")
    source = models.CharField(max_length=20, blank=True, db_default="")
    spread = models.DurationField(null=True, blank=True)
    canary = models.IntegerField(db_default=0)
    canary_ids = models.JSONField(blank=True, db_default=models.Value([], output_field=models.JSONField()))
    snapshot_at = models.DateTimeField(db_default=Now())
    total = models.IntegerField(null=True, blank=True)
    done = models.IntegerField(db_default=0)
    skipped = models.IntegerField(db_default=0)
    cursor_at = models.DateTimeField(null=True, blank=True)
    cursor_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    spread_from = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, db_default="")

    class Meta:
        db_table = "django_jobs_bulk_operation"
        verbose_name = _("bulk operation")
        verbose_name_plural = _("bulk operations")
        default_permissions = ("view",)
        indexes = (
            models.Index(
                fields=["created_at"],
                condition=models.Q(state=BulkState.RUNNING),
                name="django_jobs_bulk_running",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id} {self.state}"
