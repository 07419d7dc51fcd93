"""Worker processes, for people and metrics. Never consulted about the life of a job: that is the lease's business."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Worker(models.Model):
    """``id`` is new at each process start, whatever the host or pod is called."""

    id = models.CharField(max_length=100, primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    queues = models.JSONField()
    version = models.CharField(max_length=50)
    running = models.IntegerField(db_default=0)
    started_at = models.DateTimeField(db_default=Now())
    last_seen_at = models.DateTimeField(db_default=Now())
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "django_jobs_worker"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.id
