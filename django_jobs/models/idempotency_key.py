"""Keys that outlive their jobs, so that a late duplicate finds the first job instead of running again."""

from __future__ import annotations

from django.db import models


class IdempotencyKey(models.Model):
    """Never rewritten while its job is unfinished or dead; replaceable once ``expires_at`` has passed."""

    pk = models.CompositePrimaryKey("queue", "key")
    queue = models.CharField(max_length=200)
    key = models.CharField(max_length=255)
    job_id = models.UUIDField()
    payload_hash = models.BinaryField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "django_jobs_idempotency_key"
        indexes = (models.Index(fields=["expires_at"], name="django_jobs_idempotency_expiry"),)

    def __str__(self) -> str:
        return f"{self.queue}: {self.key}"
