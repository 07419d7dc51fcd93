"""One log line for each run that ended, with its facts as attributes of the record: job_id, type, attempt,
duration_ms, status.
"""

from __future__ import annotations

import logging

from django_jobs.logs import get_logger
from django_jobs.outcomes import Buried, Finished, Outcome, Rescheduled, Settled

from .running import Run

LINE = (
    "job_id=%(job_id)s type=%(type)s queue=%(queue)s attempt=%(attempt)d duration_ms=%(duration_ms)d "
    "status=%(status)s%(error)s"
)

logger = get_logger("django_jobs.runs")


def final_status(outcome: Outcome | Settled, written: str | None) -> str:
    """In one word, what became of the run; ``written`` is what the engine made of it, None if the job goes on."""
    match outcome:
        case Settled():
            return "succeeded"
        case Rescheduled(why="failed") if written is None:
            return "retrying"
        case Rescheduled(why=why) if written is None:
            return why
    return written or "finished"


def log_run(run: Run, outcome: Outcome | Settled, status: str) -> None:
    level = _level(status)
    if not logger.isEnabledFor(level):
        return
    facts = {
        "job_id": str(run.job.id),
        "type": run.job.type,
        "queue": run.job.queue,
        "attempt": run.job.attempt,
        "duration_ms": outcome.duration_ms,
        "status": status,
    }
    logger.log(level, LINE, facts | {"error": _error(outcome)}, extra=facts)


def _level(status: str) -> int:
    if status == "dead":
        return logging.ERROR
    return logging.WARNING if status in ("retrying", "untaken") else logging.INFO


def _error(outcome: Outcome | Settled) -> str:
    match outcome:
        case Finished(failure=failure) | Rescheduled(failure=failure) | Buried(failure=failure) if failure is not None:
            return f" error={failure.error_type}: {failure.summary}"
    return ""
