"""The schedules that this build declares in its code, and how the table follows them.

Two builds run side by side during a deploy, and processes start again at any time. So nothing is undone because one
build does not know it: a declaration counts as long as a running process says it, and a newer one is not replaced by
an older one while a running process says the newer (see docs/decisions/declared-schedules.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import connections, transaction
from django.db.models.functions import Now

from django_jobs.conf import get_settings
from django_jobs.engines import statements
from django_jobs.exceptions import DjangoJobsError, InvalidSchedule
from django_jobs.logs import get_logger
from django_jobs.models import Schedule, SetBy

from .schedule_spec import ScheduleSpec

logger = get_logger("django_jobs.maintenance")

SAY_AGAIN = timedelta(seconds=30)
WORDS_LAST = timedelta(minutes=10)
MOST_SUPERSEDED = 10

Action = Literal["created", "updated", "disabled", "unchanged", "newer elsewhere", "wrong"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """``detail``: the fields that changed, or what is wrong."""

    name: str
    action: Action
    detail: str = ""


class DeclaredSchedules:
    """By name, in the order of their declarations."""

    def __init__(self) -> None:
        self._specs: dict[str, ScheduleSpec] = {}

    def add(self, spec: ScheduleSpec) -> None:
        """Raises InvalidSchedule if the name is declared with other words."""
        if self._specs.setdefault(spec.name, spec) != spec:
            raise InvalidSchedule(f"Schedule {spec.name!r} is declared twice, with different words. Rename one.")

    def __iter__(self) -> Iterator[ScheduleSpec]:
        return iter(self._specs.values())


declared_schedules = DeclaredSchedules()


def sync_schedules(*, decide: bool = False, forget: bool = True, dry_run: bool = False) -> list[Synced]:
    """Make the table follow this build's declarations. An operator's word on ``enabled`` stands.

    ``decide``: this build's words count now, whatever other processes say. ``forget``: disable what no process has
    declared for WORDS_LAST; with ``decide``, whatever this build does not declare. ``dry_run``: only tell.
    """
    alias = get_settings().database
    specs = sorted(declared_schedules, key=lambda spec: spec.name)  # in one order everywhere, against deadlocks
    with transaction.atomic(using=alias):
        statements(alias).wait_briefly(connections[alias])  # whoever has a row locked holds up no other service
        known = Schedule.objects.using(alias).filter(pk__in=[spec.name for spec in specs]).annotate(now=Now())
        rows = {row.pk: row for row in known}
        results = [_sync(spec, rows.get(spec.name), decide=decide) for spec in specs]
        _say_again(specs)
        if forget:
            results += _forget([spec.name for spec in specs], decide=decide)
        if dry_run:
            transaction.set_rollback(True, using=alias)
    return results


def _sync(spec: ScheduleSpec, row: Schedule | None, *, decide: bool) -> Synced:
    try:
        columns, words = spec.columns(), spec.fingerprint()
    except DjangoJobsError as error:
        return Synced(name=spec.name, action="wrong", detail=str(error))
    if row is None:
        _create(spec.name, columns, words)
        return Synced(name=spec.name, action="created")
    if row.declaration != words and words in row.superseded and not (decide or _is_silent(row)):
        return Synced(name=spec.name, action="newer elsewhere")
    if row.declaration == words or row.enabled_by == SetBy.OPERATOR:
        del columns["enabled"]
    changes = {name: value for name, value in columns.items() if getattr(row, name) != value}
    if not changes and row.declaration == words:
        return Synced(name=spec.name, action="unchanged")
    _update(row, changes, words)
    return Synced(name=spec.name, action="updated", detail=", ".join(changes) or "declared in code")


def _is_silent(row: Schedule) -> bool:
    now: datetime = row.now  # type: ignore[attr-defined]
    return row.declared_at is None or row.declared_at < now - WORDS_LAST


def _create(name: str, columns: dict[str, Any], words: str) -> None:
    """Another process may be first, with the same words or newer ones."""
    row = Schedule(pk=name, declared_in_code=True, declaration=words, declared_at=Now(), **columns)
    Schedule.objects.using(get_settings().database).bulk_create([row], ignore_conflicts=True)


def _update(row: Schedule, changes: dict[str, Any], words: str) -> None:
    """Unless another process was faster: then our turn comes in a minute."""
    superseded = [old for old in (*row.superseded, row.declaration) if old and old != words]
    Schedule.objects.using(get_settings().database).filter(pk=row.pk, declaration=row.declaration).update(
        declared_in_code=True,
        declaration=words,
        declared_at=Now(),
        superseded=superseded[-MOST_SUPERSEDED:],
        updated_at=Now(),
        **changes,
    )


def _say_again(specs: Iterable[ScheduleSpec]) -> None:
    """One process's word is enough for all of its build."""
    words = [words for spec in specs if (words := _words(spec))]
    said = Schedule.objects.using(get_settings().database).filter(declaration__in=words)
    said.filter(declared_at__lt=Now() - SAY_AGAIN).update(declared_at=Now())


def _words(spec: ScheduleSpec) -> str:
    try:
        return spec.fingerprint()
    except DjangoJobsError:
        return ""  # reported by _sync


def _forget(names: list[str], *, decide: bool) -> list[Synced]:
    left = Schedule.objects.using(get_settings().database).filter(declared_in_code=True).exclude(pk__in=names)
    if not decide:
        left = left.filter(declared_at__lt=Now() - WORDS_LAST)
    results = []
    for row in left.order_by("pk"):
        superseded = [*row.superseded, row.declaration][-MOST_SUPERSEDED:] if decide else row.superseded
        left.filter(pk=row.pk).update(
            declared_in_code=False,
            declaration="",
            declared_at=Now(),
            superseded=superseded,
            enabled=False,
            enabled_by=SetBy.CODE if row.enabled else row.enabled_by,
            updated_at=Now(),
        )
        logger.warning("Schedule %r is no longer declared in code: it is disabled.", row.pk)
        results.append(Synced(name=row.pk, action="disabled", detail="no longer declared in code"))
    return results
