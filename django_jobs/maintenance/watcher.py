"""Looks for what is wrong, and opens and resolves alerts.

Of one condition about one subject there is one live alert, however often it is seen. An alert is resolved when its
condition has not held for ALERT_CALM, so that what comes and goes does not ring each time. A condition that fails is
logged; its alerts stay as they are, and the other conditions are looked at. Whoever is to be told is told by another
service, in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import connections, transaction

from django_jobs.conf import Settings
from django_jobs.engines import statements
from django_jobs.engines.protocol import Session
from django_jobs.logs import get_logger
from django_jobs.models import Alert, AlertState, Severity

from .conditions import Condition, Finding, View, all_conditions
from .database import brief_transaction, connection_for_a_turn
from .service import Service

logger = get_logger("django_jobs.maintenance")

MOST_FINDINGS = 20
LONGEST_SUBJECT, LONGEST_SUMMARY = 300, 500
REST = "(others)"


class Watcher(Service):
    """``hasten_notifying``: called after each look."""

    name = "watcher"

    def __init__(self, settings: Settings, hasten_notifying: Callable[[], None]) -> None:
        self._settings = settings
        self._alias = settings.database
        self._hasten_notifying = hasten_notifying
        self._conditions = {
            name: condition for name, condition in all_conditions().items() if name not in settings.muted_alerts
        }
        self.pause = settings.watch_every

    def run_once(self, session: Session) -> int:
        with connection_for_a_turn(self._alias) as connection, brief_transaction(self._alias):
            now = statements(self._alias).server_time(connection)
            view = View(alias=self._alias, now=now, settings=self._settings)
            changes = sum(self._look(name, condition, view) for name, condition in self._conditions.items())
        self._hasten_notifying()
        return changes

    def _look(self, name: str, condition: Condition, view: View) -> int:
        """In a savepoint, so that a query that fails does not take the others along."""
        try:
            with transaction.atomic(using=self._alias):
                return self._record(name, list(condition(view)), view.now)
        except Exception:
            if connections[self._alias].needs_rollback or connections[self._alias].connection is None:
                raise
            logger.exception("The condition %s could not be looked at.", name)
            return 0

    def _record(self, name: str, findings: Sequence[Finding], now: datetime) -> int:
        live = {
            alert.subject: alert
            for alert in Alert.objects.using(self._alias).filter(condition=name).exclude(state=AlertState.RESOLVED)
        }
        found = {finding.subject[:LONGEST_SUBJECT]: finding for finding in _bounded(findings, set(live))}
        changes = 0
        for subject, finding in found.items():
            if subject not in live:
                self._open(name, subject, finding, now)
                changes += 1
        for subject, alert in live.items():
            if subject in found:
                self._touch(alert, found[subject], now)
            elif now - alert.last_seen_at >= self._settings.alert_calm:
                self._resolve(alert, now)
                changes += 1
        return changes

    def _open(self, name: str, subject: str, finding: Finding, now: datetime) -> None:
        Alert.objects.using(self._alias).bulk_create(
            [
                Alert(
                    condition=name,
                    subject=subject,
                    severity=finding.severity,
                    summary=finding.summary[:LONGEST_SUMMARY],
                    details=finding.details,
                    opened_at=now,
                    last_seen_at=now,
                    notify_at=now,
                )
            ],
            ignore_conflicts=True,  # another leader has just opened it
        )

    def _touch(self, alert: Alert, finding: Finding, now: datetime) -> None:
        Alert.objects.using(self._alias).filter(pk=alert.pk).update(
            last_seen_at=now,
            severity=finding.severity,
            summary=finding.summary[:LONGEST_SUMMARY],
            details=finding.details,
        )

    def _resolve(self, alert: Alert, now: datetime) -> None:
        still = Alert.objects.using(self._alias).filter(pk=alert.pk).exclude(state=AlertState.RESOLVED)
        still.update(state=AlertState.RESOLVED, resolved_at=now, notify_at=now)


def _bounded(findings: Sequence[Finding], live: set[str]) -> list[Finding]:
    """At most MOST_FINDINGS, those with an alert first, and one more that counts the rest."""
    ordered = sorted(findings, key=lambda finding: (finding.subject not in live, finding.subject))
    if len(ordered) <= MOST_FINDINGS:
        return ordered
    rest = ordered[MOST_FINDINGS:]
    worst = max((finding.severity for finding in rest), key=list(Severity).index)
    return [
        *ordered[:MOST_FINDINGS],
        Finding(
            subject=REST,
            severity=worst,
            summary=f"It holds for {len(rest)} more.",
            details={"subjects": [finding.subject for finding in rest[:100]]},
        ),
    ]
