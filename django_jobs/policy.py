"""JobType: a handler and the policy its jobs run by. Frozen; made by ``@job`` at import time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from .conf import get_settings
from .exceptions import ConfigurationError
from .payload import Signature
from .retry import RetryPolicy, retry_after

OnLost = Literal["retry", "bury"]
DelayFunction = Callable[[int, BaseException], timedelta]

logger = logging.getLogger("django_jobs")

MAX_NAME = 200
LONGEST_DELAY = timedelta(days=366)
PRIORITIES = range(-32768, 32768)


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
    aliases: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in (self.name, *self.aliases):
            if not name or len(name) > MAX_NAME or not name.isprintable():
                raise ConfigurationError(
                    f"{name!r} is no job type name: give 1 to {MAX_NAME} printable characters, such as 'send_invoice'."
                )
        if self.priority not in PRIORITIES:
            raise ConfigurationError(f"Job type {self.name!r}: priority {self.priority} is not in -32768 to 32767.")
        if self.max_attempts is not None and not 1 <= self.max_attempts <= 32000:
            raise ConfigurationError(f"Job type {self.name!r}: max_attempts must be 1 to 32000.")
        if self.timeout is not None and self.timeout <= timedelta(0):
            raise ConfigurationError(f"Job type {self.name!r}: timeout must be above zero; None means no limit.")
        if self.on_lost not in ("retry", "bury"):
            raise ConfigurationError(f"Job type {self.name!r}: on_lost is 'retry' or 'bury', not {self.on_lost!r}.")
        if self.atomic and self.signature.is_async:
            raise ConfigurationError(
                f"Job type {self.name!r}: atomic=True needs a plain def, because Django's transactions are not async. "
                "Make the handler a def, or drop atomic=True and use run.once()."
            )

    @property
    def is_async(self) -> bool:
        return self.signature.is_async

    @property
    def time_limit(self) -> timedelta | None:
        return self.timeout if self.timeout is not None else get_settings().timeout

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta:
        """How long to wait after attempt number ``attempt`` (from 1) failed with ``error``. Never raises.

        A ``Retry-After`` that the error carries is a lower bound.
        """
        policy = self.retry or get_settings().retry
        wish = retry_after(error) if error is not None else None
        return max(self._policy_delay(policy, attempt, error), wish or timedelta(0))

    def _policy_delay(
        self, policy: RetryPolicy | DelayFunction, attempt: int, error: BaseException | None
    ) -> timedelta:
        if isinstance(policy, RetryPolicy):
            return policy.delay(attempt)
        default = get_settings().retry
        if error is None:
            return default.delay(attempt)
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
