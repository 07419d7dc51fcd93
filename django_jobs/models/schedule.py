"""Schedules: what is enqueued at which times.

Whoever edits a row, also by ``queryset.update()`` or SQL, need not tell anybody: ``look_at``, which the database
computes, is in the past as long as the row's definition is not the one that ``next_run_at`` was planned for.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models.functions import Now
from django.db.models.sql.compiler import SQLCompiler
from django.utils.translation import gettext_lazy as _


class CatchUp(models.TextChoices):
    """What becomes of slots that passed while no scheduler ran."""

    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


class Overlap(models.TextChoices):
    """What becomes of a slot while the job of an earlier one is unfinished."""

    ALLOW = "allow"
    SKIP = "skip"


class SetBy(models.TextChoices):
    CODE = "code"
    OPERATOR = "operator"


# What says when a schedule fires, in the order of the generated column and of _POSTGRESQL_TEXTS.
TIMING = ("cron", "timezone", "enabled", "every", "start_at", "end_at")


class Definition(models.Func):
    """When the schedule fires, as text. A change of it starts the schedule from now.

    PostgreSQL takes only immutable functions in a generated column; how an interval or an instant is usually written
    depends on the session.
    """

    def __init__(self) -> None:
        super().__init__(*TIMING, output_field=models.TextField())

    def as_sql(self, compiler: SQLCompiler, connection: Any, **extra: Any) -> Any:  # type: ignore[override]
        columns = [compiler.compile(source)[0] for source in self.get_source_expressions()]
        texts = _POSTGRESQL_TEXTS if connection.vendor == "postgresql" else ("coalesce({}, '')",) * len(columns)
        return " || ' ' || ".join(text.format(column) for text, column in zip(texts, columns, strict=True)), []


_EPOCH_SECONDS = "coalesce(extract(epoch FROM {} - '1970-01-01 00:00:00+00'::timestamptz)::text, '')"
_POSTGRESQL_TEXTS = (
    "{}",
    "{}",
    "{}::text",
    "coalesce(extract(epoch FROM {})::text, '')",
    _EPOCH_SECONDS,
    _EPOCH_SECONDS,
)


class Schedule(models.Model):
    """One of ``cron`` and ``every`` is set. Empty options of the job mean: as its type says.

    ``enabled_by``: whose word ``enabled`` is; an operator's stands whatever the code says. ``broken``: why it cannot
    fire. ``active_since``: slots before it never fire. ``planned``: the definition ``next_run_at`` was computed for.
    ``recent_metrics``: ids and numbers of its last successes, oldest first; the history may not go back as far.
    ``declaration``: fingerprint of the code's words, ``declared_at``: when a running process last said them,
    ``superseded``: fingerprints of former words.
    """

    name = models.CharField(max_length=200, primary_key=True)
    type = models.CharField(max_length=200)
    payload = models.JSONField(blank=True, default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    queue = models.CharField(max_length=200, blank=True, db_default="")
    priority = models.SmallIntegerField(null=True, blank=True)
    tenant = models.CharField(max_length=200, blank=True, db_default="")
    max_attempts = models.SmallIntegerField(null=True, blank=True)

    cron = models.CharField(max_length=255, blank=True, db_default="")
    every = models.DurationField(null=True, blank=True)
    timezone = models.CharField(max_length=100, db_default="UTC")
    jitter = models.DurationField(default=timedelta(0), db_default=timedelta(0))
    start_at = models.DateTimeField(null=True, blank=True)
    end_at = models.DateTimeField(null=True, blank=True)
    catch_up = models.CharField(max_length=10, choices=CatchUp, db_default=CatchUp.LATEST)
    catch_up_limit = models.SmallIntegerField(db_default=100)
    catch_up_age = models.DurationField(null=True, blank=True)
    overlap = models.CharField(max_length=10, choices=Overlap, db_default=Overlap.ALLOW)

    enabled = models.BooleanField(default=True, db_default=True)
    enabled_by = models.CharField(max_length=10, choices=SetBy, db_default=SetBy.CODE)
    declared_in_code = models.BooleanField(default=False, db_default=False)
    declaration = models.CharField(max_length=64, blank=True, db_default="", editable=False)
    declared_at = models.DateTimeField(null=True, blank=True, editable=False)
    superseded = models.JSONField(
        blank=True, default=list, db_default=models.Value([], output_field=models.JSONField()), editable=False
    )

    broken = models.TextField(blank=True, db_default="", editable=False)
    next_run_at = models.DateTimeField(null=True, blank=True, editable=False)
    planned = models.TextField(blank=True, db_default="", editable=False)
    active_since = models.DateTimeField(db_default=Now(), editable=False)
    last_slot = models.DateTimeField(null=True, blank=True, editable=False)
    last_run_at = models.DateTimeField(null=True, blank=True, editable=False)

    last_success_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_metrics = models.JSONField(null=True, blank=True, editable=False)
    usual_metrics = models.JSONField(null=True, blank=True, editable=False)
    recent_metrics = models.JSONField(
        blank=True, default=list, db_default=models.Value([], output_field=models.JSONField()), editable=False
    )
    expect_success_within = models.DurationField(null=True, blank=True)
    expect = models.JSONField(blank=True, default=dict, db_default=models.Value({}, output_field=models.JSONField()))

    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    look_at = models.GeneratedField(
        expression=models.Case(
            models.When(~models.Q(planned=Definition()), then="created_at"),
            models.When(broken="", enabled=True, then="next_run_at"),
            output_field=models.DateTimeField(),
        ),
        output_field=models.DateTimeField(),
        db_persist=True,
    )

    class Meta:
        db_table = "django_jobs_schedule"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        indexes = (
            models.Index(
                fields=["look_at"], condition=models.Q(look_at__isnull=False), name="django_jobs_schedule_look"
            ),
            models.Index(fields=["name"], condition=~models.Q(broken=""), name="django_jobs_schedule_broken"),
        )

    def __str__(self) -> str:
        return self.name
