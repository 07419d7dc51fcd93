"""The one setting, ``DJANGO_JOBS``: read on first use, validated whole, frozen.

Durations are ``timedelta`` or a number of seconds. A wrong value raises ConfigurationError that names every
fault at once; the system checks report the same text with an id.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.core.signals import setting_changed
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from .exceptions import ConfigurationError, UnknownQueue
from .redaction import DEFAULT_NAMES
from .retry import RetryPolicy

SETTING = "DJANGO_JOBS"
ABOVE_ZERO = (
    "timeout",
    "rescue_every",
    "stage_every",
    "poll_every",
    "poll_every_unproven",
    "watch_every",
    "alert_oldest_age",
    "alert_old_transaction",
)
CONDITIONS = (
    "overdue_success",
    "unexpected_metrics",
    "broken_schedule",
    "new_dead_group",
    "dead_rate",
    "lost_leases",
    "oldest_job",
    "queue_trend",
    "unserved_queue",
    "old_transaction",
    "dead_tuples",
    "missing_partition",
)
RETENTIONS = (
    "history_retention",
    "dead_retention",
    "count_retention",
    "slot_retention",
    "alert_retention",
    "audit_retention",
)
NOT_NEGATIVE = ("alert_calm", "timeout_grace", "idempotency_retention", "unknown_patience", "shutdown_timeout")


class Settings(BaseModel):
    """The validated setting. Field names in upper case are the keys of ``DJANGO_JOBS``."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=str.upper,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )

    database: str = Field(default="default", description="Alias of the database that holds the jobs.")
    queues: tuple[str, ...] = Field(
        default=("default",), description="Every queue there is. Enqueueing to another one is an error."
    )
    default_queue: str = Field(default="", description="Queue of job types that name none. Empty: the first of QUEUES.")
    harmless_aliases: frozenset[str] = Field(
        default=frozenset(),
        description="Aliases whose open transactions do not matter to enqueueing, such as a cache or an audit log.",
    )
    concurrency: int = Field(default=10, ge=1, le=1000, description="Slots shared by the queues without their own.")
    max_attempts: int = Field(default=12, ge=1, le=32000, description="Attempts before a job is buried.")
    timeout: timedelta | None = Field(default=None, description="Longest run of one attempt. None: no limit.")
    timeout_grace: timedelta = Field(
        default=timedelta(seconds=30),
        description="How long a thread may overrun its time-out before it counts as stuck and its process is replaced.",
    )
    retry: RetryPolicy = Field(
        default_factory=RetryPolicy,
        description="Delays between attempts: {'base': 2, 'cap': 3600, 'floor': 0.1}.",
    )
    max_payload_bytes: int = Field(default=262_144, ge=256, description="Largest encoded payload.")
    idempotency_retention: timedelta = Field(
        default=timedelta(days=14), description="How long a key is remembered after the job's run_at."
    )
    lease: timedelta = Field(
        default=timedelta(seconds=60), description="How long a silent process keeps its running jobs."
    )
    renew_every: timedelta | None = Field(
        default=None, description="Pause between renewals. At most a third of LEASE, which is the default."
    )
    rescue_every: timedelta = Field(
        default=timedelta(seconds=2),
        description="Longest pause between looks for leases that ran out, of the process that looks for all.",
    )
    stage_every: timedelta = Field(
        default=timedelta(seconds=2),
        description="Longest pause between looks for scheduled jobs that are due, of the process that looks for all.",
    )
    poll_every: timedelta = Field(
        default=timedelta(seconds=30), description="Safety poll of a sleeping worker that can be woken."
    )
    poll_every_unproven: timedelta = Field(
        default=timedelta(seconds=1),
        description="Poll of a worker that cannot be woken (pooler, LISTEN off).",
    )
    listen: bool = Field(default=True, description="Wake workers by LISTEN/NOTIFY. False: they poll.")
    unknown_patience: timedelta = Field(
        default=timedelta(hours=24),
        description="How long a job no worker can take waits before it is buried.",
    )
    shutdown_timeout: timedelta = Field(
        default=timedelta(seconds=30), description="How long a stopping worker waits for its running jobs."
    )
    release: str = Field(
        default="",
        max_length=200,
        description="Label of the deployed release, such as a commit: tells which dead groups are new in it, and what "
        "each worker runs.",
    )
    redact: tuple[str, ...] = Field(
        default=DEFAULT_NAMES,
        description="Names of payload fields whose values people see only with the permission to reveal them: "
        "`card` hides `card`, `card_number` and `clientCard`, not `discard`.",
    )

    history_retention: timedelta | None = Field(
        default=timedelta(days=30), description="How long finished jobs are kept, in whole days. None: for ever."
    )
    dead_retention: timedelta | None = Field(
        default=None,
        description="After how long a dead job is given up: a history row, discarded. None: kept until somebody acts.",
    )
    count_retention: timedelta | None = Field(
        default=timedelta(days=90), description="How long the counts of ended runs are kept. None: for ever."
    )
    slot_retention: timedelta | None = Field(
        default=timedelta(days=90), description="How long the slots of schedules are kept. None: for ever."
    )
    alert_retention: timedelta | None = Field(
        default=timedelta(days=90), description="How long resolved alerts are kept. None: for ever."
    )
    audit_retention: timedelta | None = Field(
        default=timedelta(days=365),
        description="How long it is kept what people did: audit entries and finished bulk operations. None: for ever.",
    )

    watch_every: timedelta = Field(
        default=timedelta(seconds=60), description="Pause between looks for what alerts are about."
    )
    notifiers: tuple[str, ...] = Field(
        default=("log",),
        repr=False,
        description="Who is told of alerts: 'log', 'mail' (to ADMINS), the https:// address of a webhook that takes "
        "what Slack takes, or the dotted path of a function that takes an AlertEvent.",
    )
    muted_alerts: frozenset[str] = Field(default=frozenset(), description="Conditions that are not looked for.")
    alert_calm: timedelta = Field(
        default=timedelta(minutes=5),
        description="How long a condition must not have held before its alert counts as resolved.",
    )
    alert_oldest_age: timedelta = Field(
        default=timedelta(minutes=15), description="How long a ready job may wait before there is an alert."
    )
    alert_dead_percent: int = Field(
        default=20, ge=1, le=100, description="Which part of a type's jobs may die in 15 minutes, from five on."
    )
    alert_lost_leases: int = Field(default=5, ge=1, description="How many runs may lose their lease in 15 minutes.")
    alert_old_transaction: timedelta = Field(
        default=timedelta(minutes=30), description="How long a transaction in the jobs' PostgreSQL may be open."
    )
    alert_dead_tuples: int = Field(
        default=500_000, ge=1, description="How many dead rows the jobs table may hold in PostgreSQL."
    )

    @field_validator("muted_alerts")
    @classmethod
    def _known_conditions(cls, names: frozenset[str]) -> frozenset[str]:
        for name in sorted(names - set(CONDITIONS)):
            raise ValueError(
                f"{name!r} is no condition of alerts.{did_you_mean(name, CONDITIONS)} Known: {', '.join(CONDITIONS)}"
            )
        return names

    @field_validator("notifiers")
    @classmethod
    def _notifier_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for number, name in enumerate(names, start=1):
            check_notifier(name, number)
        return names

    @field_validator("retry", mode="before")
    @classmethod
    def _retry_from_dict(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        unknown = set(value) - {"base", "cap", "floor"}
        if unknown:
            raise ValueError(f"unknown keys {sorted(unknown)}; known are base, cap and floor")
        return RetryPolicy(**{name: _as_duration(duration) for name, duration in value.items()})

    @field_validator("queues")
    @classmethod
    def _queue_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            raise ValueError("declare at least one queue")
        for name in names:
            check_queue_name(name)
        if len(set(names)) < len(names):
            raise ValueError("a queue is declared twice")
        return names

    @model_validator(mode="after")
    def _times_agree(self) -> Settings:
        if self.lease < timedelta(seconds=1):
            raise ValueError("LEASE must be at least 1 second")
        if self.renew_every is not None and not timedelta(0) < self.renew_every <= self.lease / 3:
            raise ValueError(
                f"RENEW_EVERY ({self.renew_every}) must be above zero and at most a third of LEASE ({self.lease}): "
                "two renewals may fail before a lease runs out. Lower RENEW_EVERY or raise LEASE"
            )
        if min(self.stage_every, self.rescue_every) > max(self.lease / 6, timedelta(seconds=1)):
            raise ValueError(
                f"STAGE_EVERY ({self.stage_every}) or RESCUE_EVERY ({self.rescue_every}) must be at most a sixth of "
                f"LEASE ({self.lease}): a worker that looks less often cannot tell a server that stood still from a "
                "dead worker"
            )
        for name in RETENTIONS:
            if (kept := getattr(self, name)) is not None and kept < timedelta(days=1):
                raise ValueError(f"{name.upper()} must be at least a day, or None to keep everything")
        for name in ABOVE_ZERO:
            if (value := getattr(self, name)) is not None and value <= timedelta(0):
                raise ValueError(f"{name.upper()} must be above zero")
        for name in NOT_NEGATIVE:
            if getattr(self, name) < timedelta(0):
                raise ValueError(f"{name.upper()} must be zero or more")
        if self.default_queue and self.default_queue not in self.queues:
            raise ValueError(f"DEFAULT_QUEUE {self.default_queue!r} is not one of QUEUES")
        return self

    @property
    def first_queue(self) -> str:
        return self.default_queue or self.queues[0]

    @property
    def renewal_pause(self) -> timedelta:
        return self.renew_every or self.lease / 3

    def declared(self, queue: str) -> str:
        """Return ``queue``. Raises UnknownQueue, naming the nearest one."""
        if isinstance(queue, str) and queue in self.queues:
            return self.queues[self.queues.index(queue)]
        told = {
            "queue": queue,
            "hint": did_you_mean(queue, self.queues),
            "declared": ", ".join(self.queues),
            "setting": SETTING,
        }
        raise UnknownQueue(
            _(
                "Queue %(queue)r is not declared.%(hint)s Declared: %(declared)s. "
                "Add it to %(setting)s['QUEUES'] or use one of these."
            )
            % told
        )


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The nearest known word, as a sentence behind a space; empty if none is near."""
    near = get_close_matches(word, list(known), n=1) if isinstance(word, str) else []
    return " " + _("Did you mean %r?") % near[0] if near else ""


def check_queue_name(name: str) -> None:
    """Raise ValueError unless ``name`` can stand in a command line and in the tables."""
    if not name or name != name.strip() or len(name) > 200 or any(c in ",:" or not c.isprintable() for c in name):
        raise ValueError(
            f"{name!r} is no queue name: 1 to 200 printable characters, no comma, no colon, no space at the ends"
        )


def check_notifier(name: str, number: int) -> None:
    """Raise ValueError unless it names a notifier. The message does not repeat it: a webhook's address is a secret."""
    parts = urlsplit(name)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    is_webhook = bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and is_local))
    is_path = "." in name and all(part.isidentifier() for part in name.split("."))
    if not (name in ("log", "mail") or is_webhook or is_path):
        raise ValueError(
            f"entry {number} is neither 'log' nor 'mail', nor an https:// address, nor a dotted path such as "
            "'shop.alerts.page_somebody' (plain http:// only to this machine)"
        )


def _as_duration(value: Any) -> Any:
    return timedelta(seconds=value) if isinstance(value, int | float) else value


@cache
def get_settings() -> Settings:
    """The frozen settings. Raises ConfigurationError that lists every fault."""
    raw = getattr(django_settings, SETTING, {})
    if not isinstance(raw, dict):
        raise ConfigurationError(f"{SETTING} must be a dict, not {type(raw).__name__}.")
    try:
        return Settings.model_validate(raw)
    except (ValidationError, ConfigurationError) as error:
        raise ConfigurationError(f"{SETTING} is wrong: {'; '.join(setting_faults(error))}.") from None


def setting_faults(error: ValidationError | ConfigurationError) -> list[str]:
    """One sentence for each wrong key."""
    if isinstance(error, ConfigurationError):
        return [str(error)]
    return [_fault(detail) for detail in error.errors(include_url=False, include_input=False)]


def _fault(detail: Any) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = [name.upper() for name in Settings.model_fields]
        return f"unknown key {where!r}.{did_you_mean(where.upper(), known)} Known: {', '.join(known)}"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _forget(*, setting: str, **_: object) -> None:
    if setting == SETTING:
        get_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_jobs.conf")
