"""JobType: a handler and the policy its jobs run by. Frozen; made by ``@job`` at import time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from .conf import get_settings
from .exceptions import ConfigurationError
from .expectations import Expectation, parse_expectations
from .logs import get_logger
from .payload import Signature
from .retry import RetryPolicy, retry_after

OnLost = Literal["retry", "bury"]
Isolation = Literal["process"]
DelayFunction = Callable[[int, BaseException], timedelta]

logger = get_logger("django_jobs")

MAX_NAME = 200
LONGEST_DELAY = timedelta(days=366)
PRIORITIES = range(-32768, 32768)
# Processes for isolated handlers that a worker keeps for the next run.
MOST_IDLE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class JobType:
    """``None`` in a field means: as ``DJANGO_JOBS`` says."""

    name: str
    handler: Callable[..., Any]
    signature: Signature
    queue: str | None = None
    priority: int = 0
    max_attempts: int | None = None
    timeout: timedelta | None = None
    retry: RetryPolicy | DelayFunction | None = None
    atomic: bool = False
    on_lost: OnLost = "retry"
    isolation: Isolation | None = None
    aliases: tuple[str, ...] = field(default=())
    expect_success_within: timedelta | None = None
    expect: Mapping[str, Expectation] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in (self.name, *self.aliases):
            if not is_name(name):
                raise ConfigurationError(
                    f"{name!r} is no job type name: give 1 to {MAX_NAME} printable characters, such as 'send_invoice'."
                )
        for fault in self._faults():
            raise ConfigurationError(f"Job type {self.name!r}: {fault}")

    def _faults(self) -> Iterator[str]:
        if self.queue is not None and not is_name(self.queue):
            yield f"queue must be the name of a declared queue, not {self.queue!r}."
        if not is_int(self.priority) or self.priority not in PRIORITIES:
            yield f"priority must be a whole number from -32768 to 32767, not {self.priority!r}."
        if self.max_attempts is not None and not (is_int(self.max_attempts) and 1 <= self.max_attempts <= 32000):
            yield f"max_attempts must be a whole number from 1 to 32000, not {self.max_attempts!r}."
        if self.timeout is not None and not _is_positive(self.timeout):
            yield f"timeout must be seconds or a timedelta above zero, not {self.timeout!r}; None means no limit."
        if self.retry is not None and not _can_delay(self.retry):
            yield f"retry must be a RetryPolicy or a function of (attempt, error), not {self.retry!r}."
        if self.expect_success_within is not None and not _is_positive(self.expect_success_within):
            shown = repr(self.expect_success_within)
            yield f"expect_success_within must be seconds or a timedelta above zero, not {shown}."
        try:
            parse_expectations(self.expect)
        except ConfigurationError as error:
            yield str(error)
        if self.on_lost not in ("retry", "bury"):
            yield f"on_lost is 'retry' or 'bury', not {self.on_lost!r}."
        if self.isolation not in (None, "process"):
            yield f"isolation is None or 'process', not {self.isolation!r}."
        if self.isolation is not None and self.signature.is_async:
            yield "isolation='process' needs a plain def. Use asyncio.run() in it, or drop isolation='process'."
        if self.atomic and self.signature.is_async:
            yield (
                "atomic=True needs a plain def, because Django's transactions are not async. "
                "Make the handler a def, or drop atomic=True and use run.once()."
            )

    @property
    def first_name(self) -> str:
        """What idempotency keys remember: renaming a type must not turn repeats into conflicts."""
        return self.aliases[0] if self.aliases else self.name

    @property
    def is_async(self) -> bool:
        return self.signature.is_async

    @property
    def is_watched(self) -> bool:
        """Does it declare what to expect of its runs?"""
        return self.expect_success_within is not None or bool(self.expect)

    @property
    def time_limit(self) -> timedelta | None:
        return self.timeout if self.timeout is not None else get_settings().timeout

    def delay_after(self, attempt: int, error: BaseException) -> timedelta:
        """How long to wait after attempt number ``attempt`` (from 1) failed with ``error``. Never raises.

        A ``Retry-After`` that the error carries is a lower bound.
        """
        policy = self.retry or get_settings().retry
        return max(self._policy_delay(policy, attempt, error), retry_after(error) or timedelta(0))

    def _policy_delay(self, policy: RetryPolicy | DelayFunction, attempt: int, error: BaseException) -> timedelta:
        if isinstance(policy, RetryPolicy):
            return policy.delay(attempt)
        default = get_settings().retry
        try:
            delay = policy(attempt, error)
        except Exception:
            logger.exception("The retry function of job type %r failed; the default policy is used.", self.name)
            return default.delay(attempt)
        if isinstance(delay, timedelta) and timedelta(0) <= delay <= LONGEST_DELAY:
            return delay
        logger.error(
            "The retry function of job type %r returned %r, not a timedelta of 0 to 366 days; the default is used.",
            self.name,
            delay,
        )
        return default.delay(attempt)


def is_int(value: object) -> bool:
    """A bool is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable()


def _is_positive(value: object) -> bool:
    return isinstance(value, timedelta) and value > timedelta(0)


def _can_delay(value: object) -> bool:
    return isinstance(value, RetryPolicy) or callable(value)
