"""What a schedule says, validated where it is said: in code, by a call, or by HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings as django_settings
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobs import cron as cron_rules
from django_jobs.conf import did_you_mean, get_settings
from django_jobs.exceptions import ConfigurationError, EnqueueError, InvalidSchedule
from django_jobs.expectations import Expectation, parse_expectations
from django_jobs.models import CatchUp, Overlap
from django_jobs.policy import MAX_NAME, JobType, is_int, is_name
from django_jobs.registry import registry

from .options import EARLIEST, LATEST, LONGEST, Options

MOST_CAUGHT_UP = 1000
KINDS: tuple[tuple[str, type, object], ...] = (
    ("type", str, gettext_lazy("a handler made by @job, or the name of a job type")),
    ("payload", Mapping, gettext_lazy("a dict of field names to values")),
    ("cron", str, gettext_lazy("a cron expression")),
    ("jitter", timedelta, gettext_lazy("a timedelta")),
    ("enabled", bool, gettext_lazy("True or False")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """One of ``cron`` and ``every`` is given. Options of the job that are empty or None are as its type says.

    ``payload`` holds the handler's arguments as Python values. Raises InvalidSchedule.
    """

    name: str
    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    cron: str = ""
    every: timedelta | None = None
    timezone: str = "UTC"
    queue: str = ""
    priority: int | None = None
    tenant: str = ""
    max_attempts: int | None = None
    jitter: timedelta = timedelta(0)
    start_at: datetime | None = None
    end_at: datetime | None = None
    catch_up: str = CatchUp.LATEST.value
    catch_up_limit: int = 100
    catch_up_age: timedelta | None = None
    overlap: str = Overlap.ALLOW.value
    enabled: bool = True
    expect_success_within: timedelta | None = None
    expect: Mapping[str, Expectation | Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise InvalidSchedule(_("Schedule %(name)r: %(fault)s") % {"name": self.name, "fault": fault})
        if self.cron:
            object.__setattr__(self, "cron", cron_rules.validate(self.cron))

    def _faults(self) -> Iterator[str]:
        if not is_name(self.name):
            yield _("a name is 1 to %d printable characters.") % MAX_NAME
        for name, kind, wanted in KINDS:
            if not isinstance(value := getattr(self, name), kind):
                told = {"name": name, "wanted": wanted, "value": value}
                yield _("%(name)s must be %(wanted)s, not %(value)r.") % told
        yield from self._timing_faults()
        yield from self._policy_faults()
        yield from self._option_faults()
        yield from _expectation_faults(self.expect_success_within, self.expect)

    def _timing_faults(self) -> Iterator[str]:
        if fault := timing_fault(self.cron, self.every, self.timezone):
            yield fault
        for name in ("start_at", "end_at"):
            if (instant := getattr(self, name)) is not None and (fault := moment_fault(name, instant)):
                yield fault
        if self.start_at and self.end_at and self.end_at < self.start_at:
            times = {"end": self.end_at, "start": self.start_at}
            yield _("end_at (%(end)s) is before start_at (%(start)s).") % times

    def _policy_faults(self) -> Iterator[str]:
        for name, known in (("catch_up", CatchUp.values), ("overlap", Overlap.values)):
            if (value := getattr(self, name)) not in known:
                told = {
                    "name": name,
                    "known": _(" or ").join(map(repr, known)),
                    "value": value,
                    "hint": did_you_mean(value, known),
                }
                yield _("%(name)s is %(known)s, not %(value)r.%(hint)s") % told
        if not is_int(self.catch_up_limit) or not 1 <= self.catch_up_limit <= MOST_CAUGHT_UP:
            told = {"most": MOST_CAUGHT_UP, "value": self.catch_up_limit}
            yield _("catch_up_limit must be a whole number from 1 to %(most)d, not %(value)r.") % told
        for name, duration in (("jitter", self.jitter), ("catch_up_age", self.catch_up_age)):
            if duration is not None and not _is_duration(duration, timedelta(0)):
                told = {"name": name, "value": duration}
                yield _("%(name)s must be a timedelta of zero or more, not %(value)r.") % told

    def _option_faults(self) -> Iterator[str]:
        try:
            self._options()
        except EnqueueError as error:
            yield str(error)

    def _options(self) -> Options:
        queue = None if self.queue == "" else self.queue
        return Options(queue=queue, priority=self.priority, tenant=self.tenant, max_attempts=self.max_attempts)

    def columns(self) -> dict[str, Any]:
        """Field of the model to value, without the name. Raises UnknownJobType and InvalidPayload."""
        job_type = registry.get(self.type)
        encoded = job_type.signature.encode(self.payload, limit=get_settings().max_payload_bytes)
        values = {name: getattr(self, name) for name in SPEC_FIELDS if name != "name"}
        values |= {"type": job_type.name, "payload": json.loads(encoded)}
        expected = parse_expectations(self.expect)
        return values | {"expect": {metric: expectation.as_json() for metric, expectation in expected.items()}}

    def fingerprint(self) -> str:
        """The same for the same words. Raises as ``columns`` does."""
        words = json.dumps([self.name, self.columns()], sort_keys=True, cls=DjangoJSONEncoder)
        return sha256(words.encode()).hexdigest()


def make_spec(name: str, type: object, payload: Mapping[str, Any] | None, options: Mapping[str, Any]) -> ScheduleSpec:
    """``type``: a handler made by ``@job``, or a name. The time zone is the project's unless given."""
    known = [field for field in SPEC_FIELDS if field not in ("name", "type", "payload")]
    for option in options:
        if option not in known:
            told = {"name": name, "option": option, "hint": did_you_mean(option, known), "known": ", ".join(known)}
            raise InvalidSchedule(
                _("Schedule %(name)r: there is no option %(option)r.%(hint)s Options: %(known)s.") % told
            )
    given = {"timezone": django_settings.TIME_ZONE, **options}
    return ScheduleSpec(name=name, type=type_name(type), payload={} if payload is None else payload, **given)


def type_name(type: object) -> Any:
    """What is neither a handle nor a name is left to ScheduleSpec to refuse."""
    job_type = getattr(type, "job_type", None)
    return job_type.name if isinstance(job_type, JobType) else type


SPEC_FIELDS = tuple(field.name for field in fields(ScheduleSpec))


def timing_fault(cron: str, every: timedelta | None, timezone: str) -> str:
    """Why these make no timetable; empty if they do."""
    if bool(cron) == (every is not None):
        return _('give either cron="0 8 * * *" or every=timedelta(minutes=10).')
    try:
        cron_rules.validate_timezone(timezone)
        if every is not None:
            cron_rules.validate_interval(every)
        else:
            cron_rules.validate(cron)
    except InvalidSchedule as error:
        return str(error)
    return ""


def moment_fault(name: str, instant: object) -> str:
    """Why a timetable cannot begin or end then; empty if it can."""
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        return _("%(name)s must be a datetime with a time zone, not %(value)r.") % {"name": name, "value": instant}
    if not EARLIEST <= instant < LATEST:
        return _("%(name)s must be between the years 1970 and 9000, not %(value)s.") % {"name": name, "value": instant}
    return ""


def _expectation_faults(within: object, expect: object) -> Iterator[str]:
    if within is not None and not _is_duration(within, timedelta(seconds=1)):
        yield _("expect_success_within must be a timedelta of 1 second or more, not %r.") % (within,)
    try:
        parse_expectations(expect)
    except ConfigurationError as error:
        yield str(error)


def encode_stored(job_type: JobType, payload: Mapping[str, Any]) -> bytes:
    """A schedule's stored payload as its job carries it. Raises InvalidPayload if the signature has changed."""
    arguments = job_type.signature.decode(json.dumps(payload))
    return job_type.signature.encode(arguments, limit=get_settings().max_payload_bytes)


def _is_duration(value: object, low: timedelta) -> bool:
    return isinstance(value, timedelta) and low <= value <= LONGEST
