"""Schedules that run every so often, whatever the clocks show.

Slots are the multiples of the interval since 1970-01-01T00:00Z. So they need no stored start, do not drift, and
are the same for every scheduler and after every restart: every 15 minutes is at :00, :15, :30 and :45 in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext as _

from django_jobs.exceptions import InvalidSchedule

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=366)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def validate_interval(every: timedelta) -> timedelta:
    """``every``, if it is whole seconds from 1 second to 366 days. Raises InvalidSchedule."""
    if not isinstance(every, timedelta):
        raise InvalidSchedule(_("An interval is a timedelta, not %r; write every=timedelta(seconds=10).") % (every,))
    if not SHORTEST <= every <= LONGEST:
        limits = {"interval": every, "days": LONGEST.days}
        raise InvalidSchedule(
            _("The interval %(interval)s is not between 1 second and %(days)d days; change it.") % limits
        )
    if every.microseconds:
        raise InvalidSchedule(_("The interval %s has a fraction of a second; write whole seconds.") % every)
    return every


def next_interval_slots(every: timedelta, after: datetime, count: int) -> list[datetime]:
    """The next ``count`` slots, in UTC and in order, each strictly later than ``after``, which is aware.

    Raises InvalidSchedule, and ValueError if ``after`` is naive.
    """
    validate_interval(every)
    if after.tzinfo is None:
        raise ValueError("after must be aware: a naive time names no instant.")
    passed = (after - _EPOCH) // every
    return [_EPOCH + every * number for number in range(passed + 1, passed + 1 + count)]
