"""The tables, one file each."""

from .dead_job import DeadJob, DeadReason
from .effect import Effect
from .envelope import JobStatus
from .history import FinalStatus, JobHistory
from .idempotency_key import IdempotencyKey
from .job import Job
from .job_count import JobCount
from .queue import Queue
from .schedule import CatchUp, Overlap, Schedule, SetBy
from .schedule_slot import ScheduleSlot, SlotOutcome
from .worker import Worker

__all__ = [
    "CatchUp",
    "DeadJob",
    "DeadReason",
    "Effect",
    "FinalStatus",
    "IdempotencyKey",
    "Job",
    "JobCount",
    "JobHistory",
    "JobStatus",
    "Overlap",
    "Queue",
    "Schedule",
    "ScheduleSlot",
    "SetBy",
    "SlotOutcome",
    "Worker",
]
