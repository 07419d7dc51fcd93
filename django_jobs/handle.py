"""``@job`` and the handle it returns: what handlers and callers import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async

from .exceptions import ConfigurationError
from .expectations import Expectation
from .operations.enqueue import enqueue_many_of_type, enqueue_type
from .operations.enqueued import EnqueuedJob
from .operations.options import Options
from .payload import Signature
from .policy import DelayFunction, Isolation, JobType, OnLost
from .registry import registry
from .retry import RetryPolicy
from .worker.running import RunningJob


@dataclass(frozen=True, slots=True)
class JobHandle:
    """A job type with the options of the next enqueueing. Calling it runs the handler here and now."""

    job_type: JobType
    options: Options = field(default_factory=Options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.job_type.handler(*args, **kwargs)

    def using(self, **options: Any) -> JobHandle:
        """A copy that enqueues with these options.

        ``queue``, ``priority`` (higher first), ``run_at`` (aware datetime) or ``delay`` (timedelta),
        ``idempotency_key``, ``tenant``, ``max_attempts``, ``context`` (str to str). Raises InvalidOption or
        UnknownQueue.
        """
        return replace(self, options=self.options.with_(options))

    def enqueue(self, /, **payload: Any) -> EnqueuedJob:
        """Enqueue one job in the caller's transaction. Raises EnqueueError; nothing is written then."""
        return enqueue_type(self.job_type, payload, self.options)

    async def aenqueue(self, /, **payload: Any) -> EnqueuedJob:
        """``enqueue`` for async callers."""
        return await sync_to_async(enqueue_type)(self.job_type, payload, self.options)

    def enqueue_many(
        self,
        payloads: Iterable[Mapping[str, Any]],
        *,
        spread: timedelta = timedelta(0),
        idempotency_keys: Iterable[str] | None = None,
    ) -> list[EnqueuedJob]:
        """Any number of jobs in one transaction, in the order of ``payloads``. Raises EnqueueError.

        ``spread``: when to run, evenly over this time. ``idempotency_keys``: one for each payload.
        """
        return enqueue_many_of_type(
            self.job_type, payloads, self.options, spread=spread, idempotency_keys=idempotency_keys
        )


def job(
    name: str,
    *,
    queue: str | None = None,
    priority: int = 0,
    max_attempts: int | None = None,
    timeout: timedelta | float | None = None,
    retry: RetryPolicy | DelayFunction | None = None,
    atomic: bool = False,
    on_lost: OnLost = "retry",
    isolation: Isolation | None = None,
    aliases: Iterable[str] = (),
    expect_success_within: timedelta | float | None = None,
    expect: Mapping[str, Expectation] | None = None,
) -> Callable[[Callable[..., Any]], JobHandle]:
    """Register the function below as the handler of job type ``name``.

    ``timeout``: of one run, timedelta or seconds. ``retry``: a RetryPolicy, or a function of (attempt, error)
    that returns a timedelta. ``atomic``: the handler's writes to the jobs database and the job's completion
    commit together. ``on_lost``: what happens when the worker vanishes in mid-run. ``isolation="process"``: run it
    in a process of its own, killed at its time-out. ``aliases``: former names, the oldest first: their jobs are
    still taken, and idempotency keys remember the oldest. ``expect_success_within``, ``expect`` (number given to
    ``run.report()`` to ``at_least(…)`` or ``near_usual(…)``): an alert says when it is not so. Raises
    ConfigurationError, at import time.
    """
    if not isinstance(name, str):
        raise ConfigurationError('Give the job type a name: write @job("send_invoice") above the handler.')

    def register(handler: Callable[..., Any]) -> JobHandle:
        job_type = JobType(
            name=name,
            handler=handler,
            signature=Signature.of(handler, run_type=RunningJob),
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            timeout=_duration(timeout),
            retry=retry,
            atomic=atomic,
            on_lost=on_lost,
            isolation=isolation,
            aliases=(aliases,) if isinstance(aliases, str) else tuple(aliases),
            expect_success_within=_duration(expect_success_within),
            expect=expect or {},
        )
        registry.register(job_type)
        return JobHandle(job_type)

    return register


def _duration(value: timedelta | float | None) -> timedelta | None:
    """What is neither is left to JobType to refuse."""
    is_seconds = isinstance(value, int | float) and not isinstance(value, bool)
    return timedelta(seconds=value) if is_seconds else value  # type: ignore[arg-type, return-value]
