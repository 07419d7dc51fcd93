"""``schedule()``: what ``jobs.py`` imports to declare schedules in code."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from .expectations import Expectation
from .handle import JobHandle
from .operations.declared_schedules import declared_schedules
from .operations.schedule_spec import make_spec
from .registry import registry


def schedule(
    name: str,
    *,
    type: JobHandle | str,
    payload: Mapping[str, Any] | None = None,
    cron: str = "",
    every: timedelta | None = None,
    timezone: str | None = None,
    jitter: timedelta = timedelta(0),
    queue: str = "",
    priority: int | None = None,
    tenant: str = "",
    max_attempts: int | None = None,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    catch_up: Literal["latest", "all", "skip"] = "latest",
    catch_up_limit: int = 100,
    catch_up_age: timedelta | None = None,
    overlap: Literal["allow", "skip"] = "allow",
    enabled: bool = True,
    expect_success_within: timedelta | None = None,
    expect: Mapping[str, Expectation | Mapping[str, float]] | None = None,
) -> None:
    """Declare that jobs of ``type`` are enqueued at the times of ``cron`` or ``every``. Call it in ``jobs.py``.

    ``type``: the handler, or its name. ``payload``: its arguments. ``timezone``: an IANA key, by default TIME_ZONE.
    ``jitter``: each job runs up to this much after its slot. ``catch_up``: which slots that passed while no scheduler
    ran are fired late: the latest, all (the last ``catch_up_limit``), none; none older than ``catch_up_age``.
    ``overlap``: whether a slot fires while the job of an earlier one is unfinished. ``start_at``, ``end_at``: aware.
    Raises InvalidSchedule and InvalidPayload, at import time.
    """
    options: dict[str, Any] = {
        "cron": cron,
        "every": every,
        "jitter": jitter,
        "queue": queue,
        "priority": priority,
        "tenant": tenant,
        "max_attempts": max_attempts,
        "start_at": start_at,
        "end_at": end_at,
        "catch_up": catch_up,
        "catch_up_limit": catch_up_limit,
        "catch_up_age": catch_up_age,
        "overlap": overlap,
        "enabled": enabled,
        "expect_success_within": expect_success_within,
        "expect": {} if expect is None else expect,
    } | ({} if timezone is None else {"timezone": timezone})
    spec = make_spec(name, type, payload, options)
    if registry.find(spec.type):
        spec.columns()  # validates the payload; a type that is registered later is left to the system checks
    declared_schedules.add(spec)
