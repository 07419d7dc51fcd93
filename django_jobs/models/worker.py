"""Worker processes, for people and metrics. Never consulted about the life of a job: that is the lease's business."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

# A process that has nothing new to tell shows itself every 30 to 40 seconds.
SEEN_WITHIN = timedelta(minutes=1)


class Worker(models.Model):
    """``id`` is new at each process start, whatever the host or pod is called.

    ``version`` is this package's; ``release`` the project's own, ``DJANGO_JOBS["RELEASE"]``. ``running``: jobs held
    at ``last_seen_at``.
    """

    id = models.CharField(max_length=100, primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    queues = models.JSONField()
    version = models.CharField(max_length=50)
    django_version = models.CharField(max_length=50, blank=True, db_default="")
    python_version = models.CharField(max_length=50, blank=True, db_default="")
    release = models.CharField(max_length=200, blank=True, db_default="")
    running = models.IntegerField(db_default=0)
    started_at = models.DateTimeField(db_default=Now())
    last_seen_at = models.DateTimeField(db_default=Now())
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "django_jobs_worker"
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.id


def alive(now: datetime | Now) -> models.Q:
    """Processes that have shown themselves within SEEN_WITHIN and not said that they end."""
    return models.Q(stopped_at=None, last_seen_at__gt=now - SEEN_WITHIN)


def queues_in(groups: Any) -> set[str]:
    """The queues of ``Worker.queues``, a list of groups of slots. Takes whatever another build wrote there."""
    lists = [names for group in _records(groups) if isinstance(names := group.get("queues"), list)]
    return {str(name) for names in lists for name in names}


def slots_in(groups: Any) -> int:
    """The slots of ``Worker.queues``; 0 for a group that tells none."""
    return sum(slots for group in _records(groups) if isinstance(slots := group.get("slots"), int))


def _records(groups: Any) -> list[dict[str, Any]]:
    return [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
