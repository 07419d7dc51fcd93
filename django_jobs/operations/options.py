"""The options of one enqueueing call, validated where they are given."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from django.utils.translation import gettext as _

from django_jobs.conf import did_you_mean, get_settings
from django_jobs.context import RESERVED
from django_jobs.exceptions import InvalidOption
from django_jobs.policy import PRIORITIES, is_int

# What every supported database and Python can hold, with room for a delay on top.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
LONGEST = timedelta(days=36_525)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``None`` means: as the job type says. At most one of ``run_at`` and ``delay`` is given."""

    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay: timedelta | None = None
    idempotency_key: str | None = None
    tenant: str = ""
    max_attempts: int | None = None
    context: dict[str, str] | None = None

    def with_(self, options: dict[str, Any]) -> Self:
        """A changed copy. Raises InvalidOption or UnknownQueue."""
        known = [field.name for field in fields(self)]
        for name in options:
            if name not in known:
                told = {"name": name, "hint": did_you_mean(name, known), "known": ", ".join(known)}
                raise InvalidOption(_("There is no option %(name)r.%(hint)s Options: %(known)s.") % told)
        return replace(self, **options)

    def __post_init__(self) -> None:
        if self.queue is not None:
            get_settings().declared(self.queue)
        if self.priority is not None:
            check_priority(self.priority)
        if self.max_attempts is not None and (not is_int(self.max_attempts) or not 1 <= self.max_attempts <= 32000):
            raise InvalidOption(
                _("max_attempts must be a whole number from 1 to 32000, not %r.") % (self.max_attempts,)
            )
        self._check_times()
        _check_text("tenant", self.tenant, 200, may_be_empty=True)
        if self.idempotency_key is not None:
            check_key(self.idempotency_key)
        if self.context is not None:
            check_context(self.context)

    def _check_times(self) -> None:
        if self.run_at is not None and self.delay is not None:
            raise InvalidOption(_("Give run_at or delay, not both."))
        if self.run_at is not None:
            if not isinstance(self.run_at, datetime):
                raise InvalidOption(
                    _("run_at must be a datetime, not %r; use delay= for a timedelta.") % (self.run_at,)
                )
            if self.run_at.utcoffset() is None:
                raise InvalidOption(
                    _(
                        "run_at=%r has no time zone, so the instant is unknown. "
                        "Use django.utils.timezone.now() or make_aware()."
                    )
                    % self.run_at
                )
            if not EARLIEST <= self.run_at < LATEST:
                raise InvalidOption(_("run_at=%r is not between the years 1970 and 9000.") % self.run_at)
        if self.delay is not None:
            check_duration("delay", self.delay)


def check_duration(name: str, value: object) -> None:
    """Raise InvalidOption unless ``value`` is a timedelta that a future instant can be made with."""
    if not isinstance(value, timedelta) or not timedelta(0) <= value <= LONGEST:
        told = {"name": name, "days": LONGEST.days, "value": value}
        raise InvalidOption(_("%(name)s must be a timedelta of zero to %(days)d days, not %(value)r.") % told)


def check_priority(priority: object) -> None:
    """Raise InvalidOption unless ``priority`` fits its column."""
    if not is_int(priority) or priority not in PRIORITIES:
        raise InvalidOption(_("priority must be a whole number from -32768 to 32767, not %r.") % (priority,))


def _check_text(name: str, value: object, longest: int, *, may_be_empty: bool) -> None:
    if not isinstance(value, str) or len(value) > longest or not (value or may_be_empty):
        told = {"name": name, "least": 0 if may_be_empty else 1, "most": longest}
        raise InvalidOption(_("%(name)s must be a string of %(least)d to %(most)d characters.") % told)
    if "\x00" in value or not _encodable(value):
        raise InvalidOption(_("%s holds a NUL character or half of a surrogate pair, which cannot be stored.") % name)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_key(key: object) -> None:
    """Raise InvalidOption unless ``key`` can be an idempotency key."""
    _check_text("idempotency_key", key, 255, may_be_empty=False)


def check_context(context: object) -> None:
    """Raise InvalidOption unless ``context`` can be stored."""
    if not isinstance(context, dict) or not all(isinstance(x, str) for pair in context.items() for x in pair):
        raise InvalidOption(_("context must be a dict of strings to strings."))
    for name, value in context.items():
        if name.startswith(RESERVED):
            told = {"name": name, "reserved": RESERVED}
            raise InvalidOption(_("context name %(name)r: names that begin with %(reserved)r are reserved.") % told)
        _check_text(f"context name {name!r}", name, 100, may_be_empty=False)
        _check_text(f"context[{name!r}]", value, 2000, may_be_empty=True)
