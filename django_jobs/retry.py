"""When a failed job runs again: full jitter under a capped exponential.

After attempt n the delay is uniform(floor, min(cap, base * 2**(n - 1))): spread over the whole interval,
as "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015) found best against a herd.

Guarantees: ``delay`` and ``retry_after`` never raise, whatever the attempt number or the exception; a delay
is never below the floor and never above the cap. It does not say how often: ``max_attempts`` does, and no
policy can exceed that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from random import Random, SystemRandom

from django_jobs import clock
from django_jobs.exceptions import ConfigurationError

LONGEST_CAP = timedelta(days=365)
LONGEST_RETRY_AFTER = timedelta(days=7)

_MICROSECOND = timedelta(microseconds=1)
_MOST_DOUBLINGS = 64  # one microsecond doubled this often is above the longest cap
_LONGEST_HEADER = 64
_SYSTEM_RANDOM = SystemRandom()  # no state, so forked workers do not draw the same delays


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWindow:
    """How long a job goes on from its first failure to the start of its last attempt."""

    shortest: timedelta
    expected: timedelta
    longest: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The delays between the attempts of one job type.

    ``base``: the upper bound after the first failure; it doubles with each further one up to ``cap``.
    ``floor``: the lower bound of every delay. ConfigurationError unless 0 <= floor <= base <= cap <= 365
    days and base > 0.
    """

    base: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(hours=1)
    floor: timedelta = timedelta(milliseconds=100)

    def __post_init__(self) -> None:
        for name in ("base", "cap", "floor"):
            if not isinstance(getattr(self, name), timedelta):
                raise ConfigurationError(f"RetryPolicy: {name} must be a timedelta, as in timedelta(seconds=2).")
        if self.base <= timedelta(0) or self.floor < timedelta(0):
            raise ConfigurationError("RetryPolicy: base must be above zero and floor not below it.")
        if self.floor > self.base:
            raise ConfigurationError(f"RetryPolicy: floor {self.floor} is above base {self.base}; lower it.")
        if self.base > self.cap:
            raise ConfigurationError(f"RetryPolicy: base {self.base} is above cap {self.cap}; raise the cap.")
        if self.cap > LONGEST_CAP:
            raise ConfigurationError(f"RetryPolicy: cap {self.cap} is above {LONGEST_CAP.days} days; lower it.")

    def delay(self, attempt: int, *, random: Random = _SYSTEM_RANDOM) -> timedelta:
        """The delay after attempt ``attempt`` (from 1) failed, to the microsecond."""
        upper = self._upper(attempt)
        return random.randint(self.floor // _MICROSECOND, upper // _MICROSECOND) * _MICROSECOND

    def window(self, max_attempts: int) -> RetryWindow:
        """The time that ``max_attempts`` attempts span, without the time the attempts themselves take."""
        pauses = max(max_attempts - 1, 0)
        shortest, longest = pauses * (self.floor // _MICROSECOND), sum(self._uppers(pauses))
        return RetryWindow(
            shortest=_bounded(shortest),
            expected=_bounded((shortest + longest) // 2),
            longest=_bounded(longest),
        )

    def _upper(self, attempt: int) -> timedelta:
        doublings = min(max(attempt - 1, 0), _MOST_DOUBLINGS)
        return min(self.cap // _MICROSECOND, (self.base // _MICROSECOND) << doublings) * _MICROSECOND

    def _uppers(self, pauses: int) -> Iterator[int]:
        """Microseconds, one item for each growing pause and one for all that are at the cap."""
        growing = min(pauses, _MOST_DOUBLINGS)
        for attempt in range(1, growing + 1):
            yield self._upper(attempt) // _MICROSECOND
        yield (pauses - growing) * (self.cap // _MICROSECOND)


def retry_after(error: BaseException) -> timedelta | None:
    """The pause the other side asked for, or None.

    Read from the exception's ``retry_after`` (seconds or timedelta), else from the ``Retry-After`` header
    of its ``response`` (RFC 9110, section 10.2.3: seconds or an HTTP date). Whatever is malformed, not in
    the future, or further away than ``LONGEST_RETRY_AFTER`` is ignored.
    """
    try:
        stated = getattr(error, "retry_after", None)
        if stated is None:
            stated = _header(error)
        pause = _pause(stated)
        return pause if pause is not None and timedelta(0) < pause <= LONGEST_RETRY_AFTER else None
    except Exception:  # noqa: BLE001
        return None


def _header(error: BaseException) -> object:
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None)
    if headers is None:
        return None
    return headers.get("Retry-After") or headers.get("retry-after")


def _pause(stated: object) -> timedelta | None:
    match stated:
        case timedelta():
            return stated
        case bool():
            return None
        case int() | float():
            return timedelta(seconds=stated)
        case str() if len(stated) <= _LONGEST_HEADER:
            return _header_pause(stated.strip())
    return None


def _header_pause(text: str) -> timedelta:
    try:
        return timedelta(seconds=float(text))
    except ValueError:
        return _aware(parsedate_to_datetime(text)) - clock.now()


def _aware(instant: datetime) -> datetime:
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _bounded(microseconds: int) -> timedelta:
    return min(microseconds, timedelta.max // _MICROSECOND) * _MICROSECOND
