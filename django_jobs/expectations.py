"""What a run's reported numbers should be like: ``expect={"rows_processed": at_least(1)}``. Pure values.

In rows and requests an expectation is ``{"at_least": 1}`` or ``{"near_usual": 0.5}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeGuard

from django.utils.translation import gettext as _

from .exceptions import ConfigurationError

FEWEST_USUAL = 5
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The number is this or more."""

    minimum: float

    def __post_init__(self) -> None:
        if not is_number(self.minimum):
            raise ConfigurationError(
                _("at_least() takes a finite number, such as at_least(1), not %r.") % (self.minimum,)
            )

    def fault(self, value: float, usual: float | None) -> str:
        """Why ``value`` is unexpected; empty if it is not. ``usual`` is None where nothing is usual yet."""
        return f"is {value:g}, below {self.minimum:g}" if value < self.minimum else ""

    def as_json(self) -> dict[str, float]:
        return {"at_least": self.minimum}


@dataclass(frozen=True, slots=True)
class NearUsual:
    """The number is within this share of its usual value, above or below."""

    share: float

    def __post_init__(self) -> None:
        if not is_number(self.share) or self.share <= 0:
            raise ConfigurationError(
                _("near_usual() takes a share above zero, such as near_usual(0.5) for half, not %r.") % (self.share,)
            )

    def fault(self, value: float, usual: float | None) -> str:
        """Why ``value`` is unexpected; empty if it is not. ``usual`` is None where nothing is usual yet."""
        if usual is None or abs(value - usual) <= self.share * abs(usual):
            return ""
        return f"is {value:g}, not within {self.share:.0%} of the usual {usual:g}"

    def as_json(self) -> dict[str, float]:
        return {"near_usual": self.share}


Expectation = AtLeast | NearUsual


def at_least(minimum: float) -> AtLeast:
    """Expect a reported number to be ``minimum`` or more. Raises ConfigurationError."""
    return AtLeast(minimum)


def near_usual(share: float) -> NearUsual:
    """Expect a reported number to be within ``share`` of its usual value, the median of the last 20 successes.

    ``near_usual(0.5)``: from half to one and a half of it. Nothing is unexpected before there were five. Raises
    ConfigurationError.
    """
    return NearUsual(share)


_KINDS: dict[str, Callable[[Any], Expectation]] = {"at_least": AtLeast, "near_usual": NearUsual}


def parse_expectations(stored: object) -> dict[str, Expectation]:
    """From their form in rows and requests. Raises ConfigurationError that names the entry."""
    if not isinstance(stored, Mapping):
        raise ConfigurationError(_("expect must be a dict of names and expectations, not %r.") % (stored,))
    return {_name(name): _parsed(name, value) for name, value in stored.items()}


def _name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        told = {"most": MAX_NAME, "name": name}
        raise ConfigurationError(
            _("expect names numbers of run.report(), with 1 to %(most)d printable characters, not %(name)r.") % told
        )
    return name


def _parsed(name: object, value: object) -> Expectation:
    if isinstance(value, AtLeast | NearUsual):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, number),) = value.items()
        if kind in _KINDS:
            return _KINDS[kind](number)
    raise ConfigurationError(
        _(
            "expect[%(name)r] must be at_least(…) or near_usual(…), written {'at_least': 1} or {'near_usual': 0.5} in "
            "rows and requests, not %(value)r."
        )
        % {"name": name, "value": value}
    )


def faults(
    expected: Mapping[str, Expectation], metrics: Mapping[str, Any] | None, usual: Mapping[str, Any] | None
) -> dict[str, str]:
    """The unexpected numbers of one run, each with the reason. A number that was not reported is unexpected."""
    found = {name: _fault(expectation, name, metrics or {}, usual or {}) for name, expectation in expected.items()}
    return {name: fault for name, fault in found.items() if fault}


def _fault(expectation: Expectation, name: str, metrics: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    value, normal = metrics.get(name), usual.get(name)
    if not is_number(value):
        return "was not reported" if value is None else f"is {str(value)[:50]!r}, no number"
    return expectation.fault(value, normal if is_number(normal) else None)


def usual_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The median of each number over these runs' metrics, of those that at least FEWEST_USUAL runs reported."""
    values: dict[str, list[float]] = {}
    for metrics in runs:
        for name, value in metrics.items():
            if is_number(value):
                values.setdefault(name, []).append(value)
    return {name: median(numbers) for name, numbers in values.items() if len(numbers) >= FEWEST_USUAL}


def is_number(value: object) -> TypeGuard[float]:
    """A finite one, that a float can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
