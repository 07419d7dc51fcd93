"""The tables, one file each."""

from .alert import Alert, AlertState, Severity
from .audit_entry import AuditEntry
from .bookmark import Bookmark
from .bulk_operation import BulkKind, BulkOperation, BulkState
from .dead_group import DeadGroup, DeadGroupChange, DeadGroupHour
from .dead_job import DeadJob
from .effect import Effect
from .envelope import JobStatus
from .history import FinalStatus, JobHistory
from .idempotency_key import IdempotencyKey
from .job import Job
from .job_count import JobCount
from .leadership import Leadership
from .queue import Queue
from .schedule import CatchUp, Overlap, Schedule, SetBy
from .schedule_slot import ScheduleSlot, SlotOutcome
from .type_record import TypeRecord
from .worker import SEEN_WITHIN, Worker

__all__ = [
    "SEEN_WITHIN",
    "Alert",
    "AlertState",
    "AuditEntry",
    "Bookmark",
    "BulkKind",
    "BulkOperation",
    "BulkState",
    "CatchUp",
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
    "Leadership",
    "Overlap",
    "Queue",
    "Schedule",
    "ScheduleSlot",
    "SetBy",
    "Severity",
    "SlotOutcome",
    "TypeRecord",
    "Worker",
]
