"""The pages for people: in the default admin by themselves, in another site by ``register(site)``.

Guarantees: nothing here writes but through an operation; nothing needs the handlers' code. The permissions of this app
decide who sees and does what.
"""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin import AdminSite
from django.db.models import Model

from django_jobs import models

from .alerts import AlertAdmin
from .audit_log import AuditEntryAdmin
from .base import JobsAdmin
from .bulk import BulkOperationAdmin
from .dead_jobs import DeadJobAdmin
from .history import JobHistoryAdmin
from .jobs import JobAdmin
from .queues import QueueAdmin
from .schedules import ScheduleAdmin
from .workers import WorkerAdmin

__all__ = [
    "ADMINS",
    "AlertAdmin",
    "AuditEntryAdmin",
    "BulkOperationAdmin",
    "DeadJobAdmin",
    "JobAdmin",
    "JobHistoryAdmin",
    "JobsAdmin",
    "QueueAdmin",
    "ScheduleAdmin",
    "WorkerAdmin",
    "register",
]

ADMINS: dict[type[Model], type[JobsAdmin]] = {
    models.Job: JobAdmin,
    models.DeadJob: DeadJobAdmin,
    models.JobHistory: JobHistoryAdmin,
    models.Schedule: ScheduleAdmin,
    models.Queue: QueueAdmin,
    models.Worker: WorkerAdmin,
    models.Alert: AlertAdmin,
    models.BulkOperation: BulkOperationAdmin,
    models.AuditEntry: AuditEntryAdmin,
}


def register(site: AdminSite) -> None:
    """Show the pages on this site."""
    for model, model_admin in ADMINS.items():
        site.register(model, model_admin)


register(admin.site)
