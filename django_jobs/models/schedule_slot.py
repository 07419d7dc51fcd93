"""What became of each slot of each schedule. Written in the transaction that enqueues its job: one slot, one job."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class SlotOutcome(models.TextChoices):
    FIRED = "fired"
    SKIPPED_OVERLAP = "skipped_overlap"
    SKIPPED_CATCH_UP = "skipped_catch_up"
    RUN_NOW = "run_now"


class ScheduleSlot(models.Model):
    """``until``: a row of missed slots stands for all from ``slot`` to before this one. Of a job that somebody ran by
    hand, ``slot`` is the moment of that, which is never one of the timetable.
    """

    id = models.BigAutoField(primary_key=True)
    schedule = models.CharField(max_length=200)
    slot = models.DateTimeField()
    outcome = models.CharField(max_length=20, choices=SlotOutcome)
    job_id = models.UUIDField(null=True, blank=True)
    until = models.DateTimeField(null=True, blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "django_jobs_schedule_slot"
        verbose_name = "slot"
        constraints = (models.UniqueConstraint(fields=["schedule", "slot"], name="django_jobs_schedule_slot_once"),)
        indexes = (
            models.Index(
                fields=["job_id"], condition=models.Q(job_id__isnull=False), name="django_jobs_schedule_slot_job"
            ),
            models.Index(fields=["at"], name="django_jobs_schedule_slot_age"),
        )

    def __str__(self) -> str:
        return f"{self.schedule} {self.slot:%Y-%m-%d %H:%M:%S%z} {self.outcome}"
