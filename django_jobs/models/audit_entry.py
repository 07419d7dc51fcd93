"""What people did, written in the transaction of what they did."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from django_jobs.ids import uuid7


class AuditEntry(models.Model):
    """``actor`` and ``actor_id`` are the name and key of whoever acted, as text: users may be kept in any model, in
    another database, or be deleted. ``target_id`` names one thing; ``count`` says how many were changed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField(db_default=Now())
    actor = models.CharField(max_length=200)
    actor_id = models.CharField(max_length=200, blank=True, db_default="")
    source = models.CharField(max_length=20)
    action = models.CharField(max_length=40)
    target_kind = models.CharField(max_length=20)
    target_id = models.CharField(max_length=255, blank=True, db_default="")
    count = models.IntegerField(db_default=1)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "django_jobs_audit_entry"
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        default_permissions = ("view",)
        indexes = (models.Index(fields=["target_kind", "target_id"], name="django_jobs_audit_target"),)

    def __str__(self) -> str:
        return f"{self.at} {self.actor} {self.action} {self.target_kind} {self.target_id}"
