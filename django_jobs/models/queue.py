"""Queues somebody has paused. A declared queue without a row runs."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Queue(models.Model):
    """Paused while ``paused_at`` is set and ``resume_at`` is empty or ahead."""

    name = models.CharField(max_length=200, primary_key=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    resume_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "django_jobs_queue"
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("view",)
        permissions = (("pause_queue", "Can pause and resume queues"),)

    def __str__(self) -> str:
        return self.name


def paused(now: datetime | Now) -> models.Q:
    """Queues that are not to be claimed from."""
    return models.Q(models.Q(resume_at=None) | models.Q(resume_at__gt=now), paused_at__isnull=False)
