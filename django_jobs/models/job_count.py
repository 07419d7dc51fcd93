"""How many runs ended how, per minute. One row per process, so that no two processes ever wait for each other's row."""

from __future__ import annotations

from django.db import models


class JobCount(models.Model):
    """``outcome``: succeeded, cancelled, dead, retrying, snoozed, handed_back, untaken; ``lost`` for a run whose lease
    ran out or whose process died, counted by who rescued or freed it; ``stale`` for a run that ended
    and no longer had its lease.

    ``histogram``: runs by duration; bucket ``n`` counts those under ``2**n`` ms, the last one the rest.
    """

    pk = models.CompositePrimaryKey("minute", "process", "queue", "type", "outcome")
    minute = models.DateTimeField()
    process = models.CharField(max_length=100)
    queue = models.CharField(max_length=200)
    type = models.CharField(max_length=200)
    outcome = models.CharField(max_length=20)
    count = models.IntegerField()
    total_ms = models.BigIntegerField()
    histogram = models.JSONField()

    class Meta:
        db_table = "django_jobs_job_count"

    def __str__(self) -> str:
        return f"{self.minute} {self.type} {self.outcome}: {self.count}"
