"""The leadership of maintenance, and what a leader looks at beside the jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction

from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import LONGEST_TERM, MAINTENANCE, RENEW_BELOW
from django_jobs.engines.values import Look
from django_jobs.models import Leadership, Schedule


class Lead(NamedTuple):
    """``followed``: what a follower sees; None if the leadership is ours. ``written``: taken or renewed just now."""

    followed: Look | None = None
    written: bool = False


def lead(config: EngineConfig, lease: timedelta, now: datetime) -> Lead:
    """Take or renew the leadership."""
    row = Leadership.objects.using(config.alias).filter(name=MAINTENANCE).first()
    if row is not None and _counts(row, lease, now):
        if row.holder != config.worker:
            return _follow(row, config, now)
        if lease * RENEW_BELOW <= row.expires_at - now <= lease:
            return Lead()
    return _take(config, lease, now)


def _counts(row: Leadership, lease: timedelta, now: datetime) -> bool:
    return now < row.expires_at <= now + max(lease, LONGEST_TERM)


def _take(config: EngineConfig, lease: timedelta, now: datetime) -> Lead:
    with transaction.atomic(using=config.alias):
        row = Leadership.objects.using(config.alias).filter(name=MAINTENANCE).first()
        if row is None:
            row = Leadership(name=MAINTENANCE, holder="", token=0, expires_at=now)
        if row.holder != config.worker:
            if _counts(row, lease, now):
                return _follow(row, config, now)
            row.holder, row.token = config.worker, row.token + 1
        row.build, row.expires_at = config.build, now + lease
        row.save(using=config.alias)
    return Lead(written=True)


def _follow(row: Leadership, config: EngineConfig, now: datetime) -> Lead:
    return Lead(followed=Look(leads=False, free_in=row.expires_at - now, same_build=row.build == config.build))


def resign(alias: str, worker: str, now: datetime) -> bool:
    ours = Leadership.objects.using(alias).filter(name=MAINTENANCE, holder=worker, expires_at__gt=now)
    return bool(ours.update(expires_at=now))


def next_slot(alias: str, now: datetime) -> timedelta | None:
    looks = Schedule.objects.using(alias).filter(look_at__isnull=False).order_by("look_at")
    first = looks.values_list("look_at", flat=True).first()
    return None if first is None else first - now
