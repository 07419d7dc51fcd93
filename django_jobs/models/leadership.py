"""Who does what one process is enough for. Nothing depends on it: with two leaders some work is done twice."""

from __future__ import annotations

from django.db import models


class Leadership(models.Model):
    """``token`` grows with each change of the holder. ``build``: fingerprint of what the holder can fire."""

    name = models.CharField(max_length=50, primary_key=True)
    holder = models.CharField(max_length=100)
    build = models.CharField(max_length=64, blank=True, db_default="")
    token = models.BigIntegerField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "django_jobs_leadership"

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"
