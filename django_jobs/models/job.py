"""The hot table: unfinished jobs only. Written by engines alone; see ``docs/architecture.md`` for who moves a
row where.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .envelope import Envelope, JobStatus


class Job(Envelope):
    """An unfinished job.

    The *ready order* (``ready_xid``, ``ready_seq``) says when the row became pending. PostgreSQL fills it by
    column defaults, the transaction's id and a sequence; elsewhere the engine counts.
    """

    status = models.CharField(max_length=20, choices=JobStatus, db_default=JobStatus.PENDING)
    locked_until = models.DateTimeField(null=True, blank=True)
    locked_by = models.CharField(max_length=100, blank=True, db_default="")
    lease_token = models.BigIntegerField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    ready_xid = models.BigIntegerField(db_default=0, editable=False)
    ready_seq = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        db_table = "django_jobs_job"
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ("view",)
        permissions = (
            ("cancel_job", "Can cancel jobs"),
            ("run_job", "Can run jobs now and change their priority"),
            ("reveal_payload", "Can see what redaction hides of payloads"),
        )
        # All partial: a row enters the indexes of its own status only, because each costs the enqueuer 1 to 2 µs.
        indexes = (
            models.Index(
                fields=["queue", "-priority", "ready_xid", "ready_seq"],
                condition=models.Q(status=JobStatus.PENDING, lost_runs=0),
                name="django_jobs_job_claim",
            ),
            models.Index(
                fields=["queue", "-priority", "ready_xid", "ready_seq"],
                condition=models.Q(status=JobStatus.PENDING, lost_runs__gt=0),
                name="django_jobs_job_suspect",
            ),
            models.Index(
                fields=["queue", "-priority", "run_at"],
                condition=models.Q(status=JobStatus.SCHEDULED),
                name="django_jobs_job_due",
            ),
            models.Index(
                fields=["locked_until"],
                condition=models.Q(status=JobStatus.PROCESSING),
                name="django_jobs_job_lease",
            ),
        )
