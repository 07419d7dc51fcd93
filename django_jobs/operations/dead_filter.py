"""Which dead jobs are meant: by group, type, queue, tenant, reason, time, text, or one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.db.models import Q, QuerySet

from django_jobs.conf import did_you_mean, get_settings
from django_jobs.exceptions import InvalidOption
from django_jobs.models import DeadJob
from django_jobs.outcomes import DeadReason

from .lookup import job_uuid

MAX_SELECTED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadFilter:
    """All that is given has to hold. ``failed_from`` is included, ``failed_before`` is not; both are aware.

    ``error``: part of the error's first line, in any case. ``ids``: at most 500, for a selection made by hand.
    """

    type: str | None = None
    fingerprint: str | None = None
    queue: str | None = None
    tenant: str | None = None
    reason: str | None = None
    failed_from: datetime | None = None
    failed_before: datetime | None = None
    error: str | None = None
    ids: tuple[UUID, ...] | None = None

    def __post_init__(self) -> None:
        if self.ids is not None:
            object.__setattr__(self, "ids", tuple(map(job_uuid, self.ids)))
        for fault in self._faults():
            raise InvalidOption(fault)

    def _faults(self) -> Iterator[str]:
        for name in ("type", "fingerprint", "queue", "tenant", "reason", "error"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or "\x00" in value):
                yield f"{name} must be a string without NUL, not {value!r}."
        if self.reason is not None and self.reason not in list(DeadReason):
            near = did_you_mean(self.reason, [reason.value for reason in DeadReason])
            yield f"There is no reason {self.reason!r}.{near} Reasons: {', '.join(DeadReason)}."
        for name in ("failed_from", "failed_before"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, datetime) or value.utcoffset() is None):
                yield f"{name} must be a datetime with a time zone, not {value!r}."
        if self.ids is not None and len(self.ids) > MAX_SELECTED:
            yield f"{len(self.ids)} ids are more than the {MAX_SELECTED} of a selection: give a filter instead."

    @property
    def is_empty(self) -> bool:
        """Does it mean every dead job?"""
        return self == DeadFilter()

    def query(self) -> Q:
        """The condition as Django's ORM takes it, on ``DeadJob``."""
        terms = {
            "type": self.type,
            "fingerprint": self.fingerprint,
            "queue": self.queue,
            "tenant": self.tenant,
            "reason": self.reason,
            "failed_at__gte": self.failed_from,
            "failed_at__lt": self.failed_before,
            "error_summary__icontains": self.error,
            "pk__in": self.ids,
        }
        return Q(**{name: value for name, value in terms.items() if value is not None})

    def dead_jobs(self) -> QuerySet[DeadJob]:
        return DeadJob.objects.using(get_settings().database).filter(self.query())

    def indexed(self) -> Self:
        """The terms by which an index finds jobs in the order of their deaths."""
        if self.ids is not None or (self.type is not None and self.fingerprint is not None):
            return replace(self, queue=None, tenant=None, reason=None, error=None)
        return type(self)(failed_from=self.failed_from, failed_before=self.failed_before)

    def as_json(self) -> dict[str, Any]:
        """What is given, as a JSON column takes it; ``from_json`` reads it back."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _stored(value) for name, value in given.items() if value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        values = dict(stored)
        for name in ("failed_from", "failed_before"):
            if name in values:
                values[name] = datetime.fromisoformat(values[name])
        if "ids" in values:
            values["ids"] = tuple(map(UUID, values["ids"]))
        return cls(**values)

    def __str__(self) -> str:
        stored = self.as_json()
        if "ids" in stored:
            stored["ids"] = f"{len(stored['ids'])} selected"
        return ", ".join(f"{name} {value}" for name, value in stored.items()) or "every dead job"


def _stored(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return [str(item) for item in value]
    return value
