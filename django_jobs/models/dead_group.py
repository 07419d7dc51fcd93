"""Dead jobs by group, kept right by the database: whatever moves a dead job, a trigger writes a change of plus or minus
one. Maintenance adds changes up; whoever reads adds up what is left, so that a count is exact at any time.
"""

from __future__ import annotations

from django.db import models


class DeadGroupChange(models.Model):
    """A dead job came (``change`` is 1) or went (-1). Only ever inserted and deleted, so no two writers wait."""

    id = models.BigAutoField(primary_key=True)
    type = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=40, blank=True)
    change = models.SmallIntegerField()
    failed_at = models.DateTimeField()
    error_type = models.CharField(max_length=200, blank=True, db_default="")
    error_summary = models.CharField(max_length=200, blank=True, db_default="")

    class Meta:
        db_table = "django_jobs_dead_group_change"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.type} {self.fingerprint}: {self.change:+d}"


class DeadGroup(models.Model):
    """All failures of a job type with one fingerprint. Stays when its last job is gone, so that ``first_seen`` lasts.

    ``first_release``: ``DJANGO_JOBS["RELEASE"]`` of the process that saw it first.
    """

    id = models.BigAutoField(primary_key=True)
    type = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=40, blank=True)
    count = models.IntegerField(db_default=0)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    first_release = models.CharField(max_length=200, blank=True, db_default="")
    error_type = models.CharField(max_length=200, blank=True, db_default="")
    error_summary = models.CharField(max_length=200, blank=True, db_default="")

    class Meta:
        db_table = "django_jobs_dead_group"
        verbose_name = "dead group"
        default_permissions = ("view",)
        constraints = (models.UniqueConstraint(fields=["type", "fingerprint"], name="django_jobs_dead_group_key"),)

    def __str__(self) -> str:
        return f"{self.type} {self.fingerprint}"


class DeadGroupHour(models.Model):
    """How many jobs of a group died in the hour that begins at ``hour``, whatever became of them since."""

    pk = models.CompositePrimaryKey("type", "fingerprint", "hour")
    type = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=40, blank=True)
    hour = models.DateTimeField()
    count = models.IntegerField(db_default=0)

    class Meta:
        db_table = "django_jobs_dead_group_hour"
        default_permissions = ()
        indexes = (models.Index(fields=["hour"], name="django_jobs_dead_hour_time"),)

    def __str__(self) -> str:
        return f"{self.type} {self.fingerprint} {self.hour}: {self.count}"
