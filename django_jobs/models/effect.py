"""Done-once markers of ``run.once(name)``."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Effect(models.Model):
    """The job has done the effect of this name."""

    pk = models.CompositePrimaryKey("job_id", "name")
    job_id = models.UUIDField()
    name = models.CharField(max_length=200)
    done_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "django_jobs_effect"

    def __str__(self) -> str:
        return f"{self.job_id}: {self.name}"
