"""What becomes of outcomes that the database refuses.

The bad one is found by halving, and recorded without its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from django_jobs.failure import Failure
from django_jobs.logs import get_logger
from django_jobs.outcomes import Buried, DeadReason, Finished, Outcome, Rescheduled
from django_jobs.policy import LONGEST_DELAY

logger = get_logger("django_jobs.engine")

# Job id and token to final status, or to None if the job goes on.
Written = dict[tuple[UUID, int], str | None]

LONGEST_DURATION_MS = 2**31 - 1


def settle_piecewise(
    outcomes: Sequence[Outcome],
    error: Exception,
    settle: Callable[[Sequence[Outcome]], Written],
    is_refusal: Callable[[Exception], bool],
) -> Written:
    """``error`` met these outcomes together: halve until the bad one is alone, and record it sanitised."""
    if len(outcomes) == 1:
        return _settle_sanitised(outcomes[0], error, settle, is_refusal)
    middle = len(outcomes) // 2
    written: Written = {}
    for half in (outcomes[:middle], outcomes[middle:]):
        try:
            written |= settle(half)
        except Exception as refusal:
            if not is_refusal(refusal):
                raise
            written |= settle_piecewise(half, refusal, settle, is_refusal)
    return written


def _settle_sanitised(
    outcome: Outcome,
    error: Exception,
    settle: Callable[[Sequence[Outcome]], Written],
    is_refusal: Callable[[Exception], bool],
) -> Written:
    """Nothing is written if that is refused as well: the job stays leased, and the others go on."""
    logger.error("The outcome of job %s is recorded without its texts: %s", outcome.job_id, error)
    try:
        return settle([sanitised(outcome)])
    except Exception as refusal:
        if not is_refusal(refusal):
            raise
        logger.critical("The outcome of job %s cannot be recorded at all: %s", outcome.job_id, refusal)
        return {}


def sanitised(outcome: Outcome) -> Outcome:
    """The same ending, without anything the handler wrote, and with numbers that every column can hold."""
    failure = Failure.of("Unrecordable", "The database refused to store this run's result or error.")
    duration = min(max(outcome.duration_ms, 0), LONGEST_DURATION_MS)
    match outcome:
        case Finished():
            return replace(outcome, result=None, metrics=None, failure=failure, duration_ms=duration)
        case Rescheduled():
            return replace(outcome, delay=min(outcome.delay, LONGEST_DELAY), failure=failure, duration_ms=duration)
        case Buried():
            return replace(
                outcome, failure=failure, reason=DeadReason.UNRECORDABLE, fingerprint="", duration_ms=duration
            )
