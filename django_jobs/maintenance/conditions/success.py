"""Silence: what was declared to succeed and did not, or did with strange numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django_jobs.exceptions import ConfigurationError
from django_jobs.expectations import faults, parse_expectations
from django_jobs.maintenance.observer import OBSERVER
from django_jobs.models import Bookmark, Schedule, Severity, TypeRecord
from django_jobs.registry import registry

from .finding import Finding, View, in_words

LONGEST_BEHIND = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """A schedule or job type, and how it fared."""

    subject: str
    since: datetime
    within: timedelta | None
    expect: Mapping[str, Any]
    last_success_at: datetime | None
    metrics: Any
    usual: Any


def overdue_success(view: View) -> Iterator[Finding]:
    """No success for longer than ``expect_success_within``, as far as the history has been read."""
    read_until = Bookmark.objects.using(view.alias).filter(pk=OBSERVER).values_list("at", flat=True).first()
    if read_until is None:
        return
    if view.now - read_until > LONGEST_BEHIND:
        yield Finding(
            subject=OBSERVER,
            summary=f"The history has not been read for {in_words(view.now - read_until)}; successes are not seen.",
        )
    for watched in _watched(view):
        start = max(watched.since, watched.last_success_at or watched.since)
        silent = read_until - start
        if watched.within is not None and silent > watched.within:
            never = "" if watched.last_success_at else " (never, since it is watched)"
            yield Finding(
                subject=watched.subject,
                summary=f"No success for {in_words(silent)}{never}; expected within {in_words(watched.within)}.",
                details={
                    "last_success_at": _shown(watched.last_success_at),
                    "watched_since": watched.since.isoformat(),
                },
            )


def unexpected_metrics(view: View) -> Iterator[Finding]:
    """The last success reported numbers that are not as ``expect`` says."""
    for watched in _watched(view):
        if not watched.expect or watched.last_success_at is None:
            continue
        try:
            unexpected = faults(parse_expectations(watched.expect), watched.metrics, watched.usual)
        except ConfigurationError as error:
            yield Finding(subject=watched.subject, severity=Severity.WARNING, summary=f"It cannot be judged: {error}")
            continue
        if unexpected:
            yield Finding(
                subject=watched.subject,
                summary=f"Succeeded, but {'; '.join(f'{name} {fault}' for name, fault in unexpected.items())}.",
                details={"metrics": watched.metrics, "usual": watched.usual},
            )


def broken_schedule(view: View) -> Iterator[Finding]:
    """A schedule that cannot fire."""
    broken = Schedule.objects.using(view.alias).filter(enabled=True).exclude(broken="").order_by("name")
    for name, reason in broken.values_list("name", "broken"):
        yield Finding(subject=f"schedule {name}", summary=f"It does not fire: {reason}")


def _watched(view: View) -> Iterator[_Watched]:
    yield from _schedules(view)
    yield from _types(view)


def _schedules(view: View) -> Iterator[_Watched]:
    """Those that still fire: a disabled, broken or ended one is not silent."""
    firing = Schedule.objects.using(view.alias).filter(enabled=True, broken="", next_run_at__isnull=False)
    silent_ones = firing.exclude(expect_success_within=None, expect={}).order_by("name")
    for schedule in silent_ones:
        yield _Watched(
            subject=f"schedule {schedule.name}",
            since=schedule.active_since,
            within=schedule.expect_success_within,
            expect=schedule.expect,
            last_success_at=schedule.last_success_at,
            metrics=schedule.last_metrics,
            usual=schedule.usual_metrics,
        )


def _types(view: View) -> Iterator[_Watched]:
    watched = {job_type.name: job_type for job_type in registry if job_type.is_watched}
    if not watched:
        return
    for record in TypeRecord.objects.using(view.alias).filter(pk__in=watched).order_by("pk"):
        job_type = watched[record.type]
        yield _Watched(
            subject=f"type {record.type}",
            since=record.watched_since,
            within=job_type.expect_success_within,
            expect=job_type.expect,
            last_success_at=record.last_success_at,
            metrics=record.last_metrics,
            usual=record.usual_metrics,
        )


def _shown(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None
