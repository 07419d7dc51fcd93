"""What a list can be narrowed to. Choices come from the code and the settings; no table is asked for its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.ids import lowest_uuid7
from django_jobs.registry import registry

Choices = Iterable[tuple[str, object]]

AGES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7), "all": None}
AGE_LABELS = (("1h", _("Last hour")), ("24h", _("Last 24 hours")), ("7d", _("Last 7 days")), ("all", _("Any time")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One input of a list's filter form. ``choices`` empty: free text, with ``suggestions``."""

    name: str
    label: object
    value: str
    choices: tuple[tuple[str, object], ...] = ()
    suggestions: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Filters:
    """What the request narrows a list to. ``fields`` gathers the inputs of its form as they are asked for."""

    values: Mapping[str, str]
    fields: list[Field] = field(default_factory=list)

    @classmethod
    def of(cls, request: HttpRequest) -> Filters:
        """PostgreSQL knows no text with a NUL in it, so nothing can match one: it is left out."""
        texts = {name: str(value).replace("\x00", "").strip() for name, value in request.GET.items()}
        return cls(values={name: text for name, text in texts.items() if text})

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def choose(self, name: str, label: object, choices: Choices, otherwise: object = _("All")) -> str:
        """Add a choice; returns what is chosen, or an empty string, which ``otherwise`` stands for."""
        offered = tuple(choices)
        value = self.value(name) if self.value(name) in dict(offered) else ""
        self.fields.append(Field(name=name, label=label, value=value, choices=(("", otherwise), *offered)))
        return value

    def write(self, name: str, label: object, suggestions: Iterable[str] = ()) -> str:
        """Add a text; returns what was written."""
        self.fields.append(Field(name=name, label=label, value=self.value(name), suggestions=tuple(suggestions)))
        return self.value(name)

    def queue(self) -> str:
        declared = get_settings().queues
        asked = self.value("queue")
        names = declared if not asked or asked in declared else (*declared, asked)
        return self.choose("queue", _("Queue"), [(name, name) for name in names])

    def type(self) -> str:
        return self.write("type", _("Type"), sorted(job_type.name for job_type in registry))

    def tenant(self) -> str:
        return self.write("tenant", _("Tenant"))

    def columns(self) -> Q:
        """Add queue, type and tenant; returns what they narrow a table to."""
        return exactly(queue=self.queue(), type=self.type(), tenant=self.tenant())

    def age(self, default: str) -> timedelta | None:
        """Add a choice of ages; returns how far back to look, None for without end."""
        value = self.value("age") if self.value("age") in AGES else default
        self.fields.append(Field(name="age", label=_("Age"), value=value, choices=AGE_LABELS))
        return AGES[value]

    def query(self, **changes: str) -> str:
        """The query string of this list with some values changed; an empty one is left out."""
        values = {name: value for name, value in {**self.values, **changes}.items() if value}
        return "?" + urlencode(values)


def exactly(**values: str) -> Q:
    """The columns that have a value have this value."""
    return Q(**{name: value for name, value in values.items() if value})


def younger_ids(age: timedelta | None) -> Q:
    """Rows whose UUIDv7 is not older than ``age``."""
    return Q() if age is None else Q(pk__gte=lowest_uuid7(clock.now() - age))
