"""How far a service has read the history."""

from __future__ import annotations

from django.db import models


class Bookmark(models.Model):
    name = models.CharField(max_length=50, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        db_table = "django_jobs_bookmark"

    def __str__(self) -> str:
        return f"{self.name} at {self.at}"
