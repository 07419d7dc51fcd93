"""The tables, one file each."""

from .audit_entry import AuditEntry
from .bulk_operation import BulkKind, BulkOperation, BulkState
from .dead_group import DeadGroup, DeadGroupChange, DeadGroupHour
from .dead_job import DeadJob
from .effect import Effect
from .envelope import JobStatus
from .history import FinalStatus, JobHistory
from .idempotency_key import IdempotencyKey
from .job import Job
from .job_count import JobCount
from .queue import Queue
from .worker import Worker

__all__ = [
    "AuditEntry",
    "BulkKind",
    "BulkOperation",
    "BulkState",
    "DeadGroup",
    "DeadGroupChange",
    "DeadGroupHour",
    "DeadJob",
    "Effect",
    "FinalStatus",
    "IdempotencyKey",
    "Job",
    "JobCount",
    "JobHistory",
    "JobStatus",
    "Queue",
    "Worker",
]
