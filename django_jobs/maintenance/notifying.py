"""Tells the notifiers of alerts that opened or were resolved, each of them once, and again later if that failed.

Before anything is sent, the alert's row is taken for a few minutes, so that two leaders tell once; a process that dies
while it sends is followed by another, so somebody may be told twice, but not never. Nobody is told of the end of what
they have not been told the beginning of, nor of the beginning of what somebody has acknowledged.

A mail server or a function that hangs counts as one that failed after TELL_SECONDS, and holds up the other notifiers
once a turn for that long. All of it has a thread of its own, so nothing else waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import connections
from django.db.models.functions import Now

from django_jobs.engines import statements
from django_jobs.engines.protocol import Session
from django_jobs.failure import Failure
from django_jobs.logs import get_logger
from django_jobs.models import Alert, AlertState

from .database import connection_for_a_turn
from .notifiers import AlertEvent, Notifier
from .service import Service
from .teller import Teller

logger = get_logger("django_jobs.maintenance")

MOST_ALERTS = 50
TAKEN = timedelta(minutes=5)
FIRST_DELAY, LONGEST_DELAY = timedelta(minutes=1), timedelta(hours=1)
MOST_TRIES = 20

Kind = Literal["opened", "resolved"]


class Notifying(Service):
    """Hastened by the watcher after each look."""

    name = "notifying"
    pause: timedelta | None = None

    def __init__(self, alias: str, notifiers: Sequence[Notifier]) -> None:
        self._alias = alias
        self._tellers = [Teller(notifier) for notifier in notifiers]

    def run_once(self, session: Session) -> int:
        """Returns how many alerts were looked after. A notifier that failed is left alone until the next turn."""
        with connection_for_a_turn(self._alias):
            failed: set[str] = set()
            due = Alert.objects.using(self._alias).filter(notify_at__lte=Now()).order_by("notify_at")
            return sum(self._look_after(alert, failed) for alert in due[:MOST_ALERTS])

    def _look_after(self, alert: Alert, failed: set[str]) -> bool:
        """Taken when its turn comes: the ones before it may have lasted for minutes."""
        now = statements(self._alias).server_time(connections[self._alias])
        taken = self._take(alert, now)
        if taken:
            self._tell_all(alert, now, failed)
        return taken

    def _take(self, alert: Alert, now: datetime) -> bool:
        """Whoever takes it moves it ahead; so it is due for one of them."""
        mine = Alert.objects.using(self._alias).filter(pk=alert.pk, notify_at__lte=now)
        alert.notify_at = now + TAKEN
        return bool(mine.update(notify_at=alert.notify_at))

    def _tell_all(self, alert: Alert, now: datetime, failed: set[str]) -> None:
        notified: dict[str, Any] = dict(alert.notified)
        tries = []
        for teller in self._tellers:
            record = notified[teller.name] = dict(notified.get(teller.name, {}))
            kind = _untold(alert, record)
            if kind is None:
                continue
            if teller.name not in failed and now >= _instant(record.get("again_at"), now):
                self._tell(teller, AlertEvent.of(alert, kind), record, now)
            if _untold(alert, record) is not None:
                failed.add(teller.name)
                tries.append(_instant(record.get("again_at"), now + FIRST_DELAY))
        rows = Alert.objects.using(self._alias).filter(pk=alert.pk)
        rows.update(notified=notified)
        # Unless somebody has asked for another round meanwhile.
        rows.filter(notify_at=alert.notify_at).update(notify_at=min(tries, default=None))

    def _tell(self, teller: Teller, event: AlertEvent, record: dict[str, Any], now: datetime) -> None:
        error = teller.tell(event)
        if error is None:
            record.clear()
            record |= {"told": event.kind, "at": now.isoformat()}
            return
        failures = record.get("failures", 0) + 1
        delay = min(FIRST_DELAY * 2 ** min(failures - 1, 10), LONGEST_DELAY)
        failure = Failure.capture(error)
        reason = f"{failure.error_type}: {failure.summary}"
        record |= {"failures": failures, "error": reason, "again_at": (now + delay).isoformat()}
        logger.warning("Alert %s: %s was not told (try %d): %s", event.id, teller.name, failures, reason)


def _untold(alert: Alert, record: dict[str, Any]) -> Kind | None:
    told, tries = record.get("told"), record.get("failures", 0)
    if tries >= MOST_TRIES:
        return None
    if alert.state == AlertState.RESOLVED:
        return "resolved" if told == "opened" else None
    return "opened" if told is None and alert.state == AlertState.OPEN else None


def _instant(text: str | None, default: datetime) -> datetime:
    return datetime.fromisoformat(text) if text else default
