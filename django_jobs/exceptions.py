"""Every error this package raises, and the four ways a handler can end on purpose.

DjangoJobsError
├── ConfigurationError          DJANGO_JOBS, a registration or a command line is wrong
├── EnqueueError                refused at the call; nothing was written
│   ├── InvalidPayload          names the field and the reason
│   ├── InvalidOption           queue, priority, run_at, delay, tenant, … of one call
│   ├── UnknownJobType          names the nearest registered type
│   ├── UnknownQueue            names the nearest declared queue
│   ├── SeparateTransactions    the job and the data could not commit together
│   └── IdempotencyConflict     the same key with another payload
├── InvalidSchedule             a cron expression, a time zone, an interval or a policy is wrong
├── ScheduleNotFound            names the nearest schedule
├── JobNotFound                 no job, dead job or history row has this id
├── AlertNotFound               no alert has this id
├── BulkNotFound                no bulk operation has this id
├── LeaseLost                   this run may no longer write; another may be running
├── RunTimedOut                 recorded for a run that overran its time-out
├── RunProcessDied              recorded for a run with isolation="process" whose process ended before it
├── WorkerLost                  recorded for a run whose process died or went silent
└── TransactionLeftOpen         recorded for a handler that left a transaction open, aborted or rolled back

Ending                          raised by a handler, never an error of this package
├── Retry                       again later, the attempt counts
├── Snooze                      again later, the attempt is refunded
├── Cancel                      finished, on purpose, without success
└── Bury                        to the dead-letter table now
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID


class DjangoJobsError(Exception):
    """The root of the tree."""


class ConfigurationError(DjangoJobsError):
    """A setting, a registration or a command line is wrong; the message says what to write instead."""


class EnqueueError(DjangoJobsError):
    """The call was refused and nothing was written."""


class InvalidPayload(EnqueueError, ValueError):
    """A payload field is missing, unknown, of the wrong type, too large, or cannot be stored."""


class InvalidOption(EnqueueError, ValueError):
    """An option of ``using()`` has a value that cannot be honoured."""


class UnknownJobType(EnqueueError, LookupError):
    """No handler is registered under this name."""


class UnknownQueue(EnqueueError, LookupError):
    """The queue is not declared in ``DJANGO_JOBS["QUEUES"]``."""


class SeparateTransactions(EnqueueError):
    """A transaction is open on another database alias, but not on the jobs alias."""


class IdempotencyConflict(EnqueueError):
    """The key was used before for another payload."""

    def __init__(self, message: str, *, job_id: UUID) -> None:
        super().__init__(message)
        self.job_id = job_id


class InvalidSchedule(DjangoJobsError, ValueError):
    """A cron expression, a time zone or an interval cannot be used; the message gives the reason in one line."""


class ScheduleNotFound(DjangoJobsError, LookupError):
    """No schedule has this name."""


class JobNotFound(DjangoJobsError, LookupError):
    """No unfinished job, dead job or history row has this id."""


class AlertNotFound(DjangoJobsError, LookupError):
    """No alert has this id."""


class BulkNotFound(DjangoJobsError, LookupError):
    """No bulk operation has this id."""


class LeaseLost(DjangoJobsError):
    """The run's lease token is no longer the job's: its writes do not count."""


class RunTimedOut(DjangoJobsError):
    """A run took longer than its job type's time-out."""


class RunProcessDied(DjangoJobsError):
    """The process of a run with ``isolation="process"`` ended before the run did."""


class WorkerLost(DjangoJobsError):
    """A run's process died, or did not renew its lease in time: it was cut off, or stood still."""


class TransactionLeftOpen(DjangoJobsError):
    """A handler returned, but what it wrote is not, or cannot be, committed."""


def _duration(what: str, value: timedelta | float) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    raise TypeError(f"{what} takes a timedelta or a number of seconds, not {value!r}.")


class Ending(Exception):
    """How a handler ends a run on purpose. Raise a subclass."""


class Retry(Ending):
    """Run again later. The attempt counts, so ``max_attempts`` still ends it.

    ``after``: the delay; None takes the job type's retry policy.
    """

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else _duration("Retry(after=…)", after)


class Snooze(Ending):
    """Run again after ``for_``; the attempt is refunded, so a job may snooze for ever."""

    def __init__(self, for_: timedelta | float) -> None:
        super().__init__(f"for {for_}")
        self.for_ = _duration("Snooze(for_=…)", for_)


class Cancel(Ending):
    """Finish now as ``cancelled``."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class Bury(Ending):
    """Move the job to the dead-letter table now, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
