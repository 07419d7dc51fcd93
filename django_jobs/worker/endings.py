"""What becomes of a run: from what the handler returned or raised to an outcome. Decides; writes nothing."""

from __future__ import annotations

from datetime import timedelta
from random import uniform
from typing import Any

from django_jobs.conf import get_settings
from django_jobs.engines.values import ClaimedJob, ExpiredLease
from django_jobs.exceptions import Bury, Cancel, Retry, RunProcessDied, RunTimedOut, Snooze, WorkerLost
from django_jobs.failure import Failure
from django_jobs.fingerprint import fingerprint
from django_jobs.logs import get_logger
from django_jobs.outcomes import Buried, DeadReason, Finished, Outcome, Rescheduled, Why
from django_jobs.policy import LONGEST_DELAY
from django_jobs.registry import registry
from django_jobs.storable import clean_json

from .running import Run

logger = get_logger("django_jobs.worker")

UNTAKEN_SECONDS = 30.0
HAND_BACK_DELAY = timedelta(seconds=2)


def succeeded(run: Run, result: object) -> Finished:
    return Finished(
        job_id=run.job.id,
        token=run.job.token,
        duration_ms=run.duration_ms,
        result=None if result is None else clean_json(result),
        metrics=run.metrics,
    )


def failed(run: Run, error: BaseException) -> Outcome:
    """What a handler's exception means. Never raises, whatever its attributes or the type's retry function do."""
    try:
        return _meaning(run, error)
    except BaseException:
        logger.exception("Job %s (%s): its error is taken as a plain failure.", run.job.id, run.job.type)
        return _retry(run, error, DeadReason.EXHAUSTED, exactly=get_settings().retry.delay(run.job.attempt))


def _meaning(run: Run, error: BaseException) -> Outcome:
    match error:
        case Snooze():
            return _again(run, _bounded(error.for_), "snoozed")
        case Cancel():
            return Finished(
                job_id=run.job.id,
                token=run.job.token,
                status="cancelled",
                duration_ms=run.duration_ms,
                metrics=run.metrics,
                failure=Failure.capture(error),
            )
        case Bury():
            return _bury(run, DeadReason.BURIED_BY_HANDLER, Failure.capture(error))
        case RunTimedOut():
            return _retry(run, error, DeadReason.TIMEOUT)
        case Retry(after=wish) if wish is not None:
            return _retry(run, error, DeadReason.EXHAUSTED, exactly=_bounded(wish))
    return _retry(run, error, DeadReason.EXHAUSTED)


def _retry(
    run: Run,
    error: BaseException,
    reason: DeadReason,
    *,
    at_least: timedelta = timedelta(0),
    exactly: timedelta | None = None,
) -> Outcome:
    failure = Failure.capture(error)
    if run.job.attempt >= run.job.max_attempts:
        return _bury(run, reason, failure)
    delay = exactly if exactly is not None else _delay(run.job.type, run.job.attempt, error)
    return _again(run, max(delay, at_least), "failed", failure)


def _delay(type_name: str, attempt: int, error: BaseException) -> timedelta:
    job_type = registry.find(type_name)
    return job_type.delay_after(attempt, error) if job_type else get_settings().retry.delay(attempt)


def _again(run: Run, delay: timedelta, why: Why, failure: Failure | None = None) -> Rescheduled:
    return Rescheduled(
        job_id=run.job.id,
        token=run.job.token,
        delay=delay,
        duration_ms=run.duration_ms,
        failure=failure,
        why=why,
    )


def _bury(run: Run, reason: DeadReason, failure: Failure) -> Buried:
    return Buried(
        job_id=run.job.id,
        token=run.job.token,
        duration_ms=run.duration_ms,
        reason=reason,
        failure=failure,
        fingerprint=fingerprint(run.job.type, failure.error_type, failure.message),
    )


def _bounded(delay: Any) -> timedelta:
    """A handler's own delay, made safe: a number is seconds, and nothing is below zero or above 366 days."""
    if isinstance(delay, int | float) and abs(delay) <= LONGEST_DELAY.total_seconds():
        delay = timedelta(seconds=delay)
    return min(max(delay, timedelta(0)), LONGEST_DELAY) if isinstance(delay, timedelta) else timedelta(0)


def timed_out(run: Run) -> RunTimedOut:
    limit = run.job_type.time_limit if run.job_type else None
    return RunTimedOut(f"The run took longer than its time-out of {limit}.")


def overran(run: Run) -> Outcome:
    """A run that is given up on although its handler still goes on: it has the grace to end before the job may start
    elsewhere.
    """
    return _retry(run, timed_out(run), DeadReason.TIMEOUT, at_least=get_settings().timeout_grace)


def died(run: Run, error: RunProcessDied) -> Outcome:
    """The process of an isolated run is gone, and how far the run came is not known: ``on_lost`` decides."""
    if run.job_type is not None and run.job_type.on_lost == "bury":
        return _bury(run, DeadReason.WORKER_LOST, Failure.capture(error))
    return failed(run, error)


def untaken(run: Run, reason: DeadReason, explanation: str) -> Outcome:
    """This build has no handler for the job, or not with this payload; another build may have."""
    if run.job.given_up:
        return _bury(run, reason, Failure.of("Untaken", explanation))
    logger.warning("Job %s (%s) is left to another build: %s", run.job.id, run.job.type, explanation)
    return Rescheduled(
        job_id=run.job.id,
        token=run.job.token,
        delay=timedelta(seconds=uniform(0.5, 1.5) * UNTAKEN_SECONDS),
        why="untaken",
    )


def undecodable(run: Run, explanation: str) -> Buried:
    return _bury(run, DeadReason.BAD_PAYLOAD, Failure.of("UndecodablePayload", explanation))


def handed_back(job: ClaimedJob, delay: timedelta = timedelta(0)) -> Rescheduled:
    """The process stops, or has no slot for it: as if it had never been claimed."""
    return Rescheduled(job_id=job.id, token=job.token, delay=delay, why="handed_back")


def lost(lease: ExpiredLease, cause: str = "worker did not renew its lease") -> Outcome:
    """A run whose lease ran out or whose process died. Judged by the row; the type's policy is used where this
    build knows it.
    """
    job_type = registry.find(lease.type)
    error = WorkerLost(f"Attempt {lease.attempt} was lost: {cause} ({lease.worker}).")
    failure = Failure.of(f"{WorkerLost.__module__}.{WorkerLost.__qualname__}", str(error))
    if lease.attempt >= lease.max_attempts or (job_type is not None and job_type.on_lost == "bury"):
        return Buried(
            job_id=lease.job_id,
            token=lease.token,
            reason=DeadReason.WORKER_LOST,
            failure=failure,
            fingerprint=fingerprint(lease.type, failure.error_type, ""),
        )
    return Rescheduled(
        job_id=lease.job_id,
        token=lease.token,
        delay=_delay(lease.type, lease.attempt, error),
        failure=failure,
        why="lost",
    )
