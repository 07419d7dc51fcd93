"""Those who are told of alerts: the log, the admins' mail, a webhook, a function of the project.

A notifier raises when it could not tell; it is asked again later. What an error says never contains a webhook's
address, which is a secret.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from django.core.mail import mail_admins
from django.utils.module_loading import import_string

from django_jobs.exceptions import DjangoJobsError
from django_jobs.logs import get_logger
from django_jobs.models import Alert

logger = get_logger("django_jobs.alerts")

TIMEOUT_SECONDS = 5.0
LEVELS = {"warning": logging.WARNING, "error": logging.ERROR, "critical": logging.CRITICAL}


class NotDelivered(DjangoJobsError):
    """The other side did not take the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvent:
    """What a notifier is told. ``kind``: ``opened`` or ``resolved``."""

    kind: Literal["opened", "resolved"]
    id: str
    condition: str
    subject: str
    severity: str
    summary: str
    details: dict[str, Any]
    opened_at: datetime
    resolved_at: datetime | None

    @classmethod
    def of(cls, alert: Alert, kind: Literal["opened", "resolved"]) -> AlertEvent:
        return cls(
            kind=kind,
            id=str(alert.pk),
            condition=alert.condition,
            subject=alert.subject,
            severity=alert.severity,
            summary=alert.summary,
            details=alert.details,
            opened_at=alert.opened_at,
            resolved_at=alert.resolved_at,
        )

    @property
    def title(self) -> str:
        """One line, without a line break whatever the subject holds."""
        word = "RESOLVED" if self.kind == "resolved" else self.severity.upper()
        return " ".join(f"[{word}] {self.condition}: {self.subject}".split())


class Notifier(Protocol):
    """``name`` stands in the alert's row and in the log."""

    name: str

    def tell(self, event: AlertEvent) -> None: ...


class LogNotifier:
    name = "log"

    def tell(self, event: AlertEvent) -> None:
        level = logging.INFO if event.kind == "resolved" else LEVELS[event.severity]
        logger.log(level, "%s: %s", event.title, event.summary)


class MailNotifier:
    name = "mail"

    def tell(self, event: AlertEvent) -> None:
        mail_admins(event.title, "\n\n".join([event.summary, *_lines(event)]))


class _NoRedirect(HTTPRedirectHandler):
    """The address is the project's choice; where it points to is not."""

    def redirect_request(self, *_: Any) -> None:
        return None


class WebhookNotifier:
    """Posts ``{"text": …}``, which Slack, Mattermost and others take."""

    def __init__(self, address: str) -> None:
        self._address = address
        digest = hashlib.sha256(address.encode()).hexdigest()[:8]
        self.name = f"webhook {urlsplit(address).hostname} {digest}"
        self._open = build_opener(_NoRedirect).open

    def tell(self, event: AlertEvent) -> None:
        body = json.dumps({"text": "\n".join([f"*{_escaped(event.title)}*", _escaped(event.summary)])}).encode()
        request = Request(self._address, body, {"Content-Type": "application/json"})  # noqa: S310 - see conf.py
        try:
            with self._open(request, timeout=TIMEOUT_SECONDS) as response:
                response.read(1)
        except HTTPError as error:
            error.close()
            raise NotDelivered(f"the webhook answered {error.code}") from None
        except Exception as error:  # noqa: BLE001 - whatever it is, its text may hold the address
            raise NotDelivered(f"the webhook could not be reached ({type(error).__name__})") from None


class FunctionNotifier:
    """A function of the project. Only the settings can name one, no row and no request."""

    def __init__(self, path: str) -> None:
        self.name = path

    def tell(self, event: AlertEvent) -> None:
        function: Callable[[AlertEvent], object] = import_string(self.name)
        function(event)


def notifier(entry: str) -> Notifier:
    """For one entry of NOTIFIERS."""
    match entry:
        case "log":
            return LogNotifier()
        case "mail":
            return MailNotifier()
    return WebhookNotifier(entry) if "://" in entry else FunctionNotifier(entry)


def _lines(event: AlertEvent) -> list[str]:
    details = [f"{name}: {value}" for name, value in event.details.items()]
    times = [f"Since {event.opened_at:%Y-%m-%d %H:%M:%S %Z}"]
    if event.resolved_at is not None:
        times.append(f"Resolved {event.resolved_at:%Y-%m-%d %H:%M:%S %Z}")
    return [*details, *times]


def _escaped(text: str) -> str:
    """What Slack would take for a mention or a link is shown as it stands."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
