"""The leadership of maintenance, and what a leader looks at beside the jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction

from django_jobs.engines.protocol import MAINTENANCE, RENEW_BELOW
from django_jobs.models import Leadership, Schedule


class Lead(NamedTuple):
    """``free_in``: None if the leadership is ours, else the time until it can be taken. ``written``: it was taken or
    renewed just now.
    """

    free_in: timedelta | None = None
    written: bool = False


def lead(alias: str, worker: str, lease: timedelta, now: datetime) -> Lead:
    """Take or renew the leadership."""
    row = Leadership.objects.using(alias).filter(name=MAINTENANCE).first()
    if row is not None and row.expires_at > now:
        if row.holder != worker:
            return Lead(free_in=row.expires_at - now)
        if row.expires_at - now >= lease * RENEW_BELOW:
            return Lead()
    return _take(alias, worker, lease, now)


def _take(alias: str, worker: str, lease: timedelta, now: datetime) -> Lead:
    leaderships = Leadership.objects.using(alias)
    with transaction.atomic(using=alias):
        row = leaderships.filter(name=MAINTENANCE).first()
        if row is None:
            row = Leadership(name=MAINTENANCE, holder="", token=0, expires_at=now)
        if row.holder != worker:
            if row.expires_at > now:
                return Lead(free_in=row.expires_at - now)
            row.holder, row.token = worker, row.token + 1
        row.expires_at = now + lease
        row.save(using=alias)
    return Lead(written=True)


def resign(alias: str, worker: str, now: datetime) -> bool:
    ours = Leadership.objects.using(alias).filter(name=MAINTENANCE, holder=worker, expires_at__gt=now)
    return bool(ours.update(expires_at=now))


def next_slot(alias: str, now: datetime) -> timedelta | None:
    looks = Schedule.objects.using(alias).filter(look_at__isnull=False).order_by("look_at")
    first = looks.values_list("look_at", flat=True).first()
    return None if first is None else first - now
