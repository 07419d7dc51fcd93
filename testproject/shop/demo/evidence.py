"""What the tables and files hold after the demo, read once. Nothing here knows what should be there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes
from email.message import Message
from functools import cached_property
from pathlib import Path
from typing import Any

from django.conf import settings

from django_jobs.models import DeadJob, Job, JobCount, JobHistory
from testproject.shop import mails
from testproject.shop.models import Customer, Order, Product, WebhookDelivery

from .cast import PREFIX

REQUESTS = "requests.jsonl"
MAIL_END = b"\n" + b"-" * 79 + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Where a job ended, or is. ``status``: succeeded, cancelled, dead, or that of an unfinished job."""

    id: str
    type: str
    queue: str
    status: str
    attempts: int
    enqueued_at: datetime
    started_at: datetime | None = None
    result: Any = None
    metrics: Any = None
    reason: str = ""
    error: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRecord:
    kind: str
    to: str
    order: str
    job: str
    attachments: dict[str, bytes]
    written_at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """``at``: seconds since the epoch."""

    at: float
    path: str
    key: str
    status: int
    body: dict[str, Any]
    answer: dict[str, Any]


class Evidence:
    """Looked at on demand, each thing once."""

    @cached_property
    def jobs(self) -> dict[str, JobRecord]:
        """Every job of the demo's stores, wherever it is, by its id."""
        return {job.id: job for source in (_unfinished(), _dead(), _finished()) for job in source}

    @cached_property
    def orders(self) -> dict[str, Order]:
        rows = Order.objects.select_related("customer").filter(customer__store__startswith=PREFIX)
        return {order.number: order for order in rows}

    @cached_property
    def customers(self) -> dict[str, Customer]:
        return {row.email: row for row in Customer.objects.filter(store__startswith=PREFIX)}

    @cached_property
    def products(self) -> list[Product]:
        return list(Product.objects.filter(store__startswith=PREFIX).order_by("store", "sku"))

    @cached_property
    def deliveries(self) -> list[WebhookDelivery]:
        return list(
            WebhookDelivery.objects.select_related("endpoint", "order").filter(endpoint__store__startswith=PREFIX)
        )

    @cached_property
    def mails(self) -> list[MailRecord]:
        return [mail for file in sorted((settings.SHOP_DIR / "mail").glob("*")) for mail in _mails(file)]

    @cached_property
    def requests(self) -> list[RequestRecord]:
        lines = (settings.SHOP_DIR / REQUESTS).read_text().splitlines()
        wanted = RequestRecord.__slots__
        return [RequestRecord(**{name: request[name] for name in wanted}) for request in map(json.loads, lines)]

    def files(self, folder: str) -> dict[str, Path]:
        """By name without suffix, unfinished ones included."""
        return {path.stem: path for path in (settings.SHOP_DIR / folder).glob("*")}

    def of_type(self, name: str) -> list[JobRecord]:
        return [job for job in self.jobs.values() if job.type == name]

    def runs(self, worker: str) -> Counter[str]:
        """How many runs of this worker ended how, by "type outcome"."""
        counted: Counter[str] = Counter()
        for row in JobCount.objects.filter(process=worker):
            counted[f"{row.type} {row.outcome}"] += row.count
        return counted

    def requests_of(self, job: JobRecord) -> list[RequestRecord]:
        """Those that carried the key in the job's result."""
        key = job.result["key"] if job.result else None
        return [request for request in self.requests if request.key == key]


def _unfinished() -> Iterator[JobRecord]:
    for row in Job.objects.filter(tenant__startswith=PREFIX):
        yield JobRecord(
            id=str(row.id),
            type=row.type,
            queue=row.queue,
            status=row.status,
            attempts=row.attempts,
            enqueued_at=row.created_at,
            error=row.last_error,
        )


def _dead() -> Iterator[JobRecord]:
    for row in DeadJob.objects.filter(tenant__startswith=PREFIX):
        yield JobRecord(
            id=str(row.id),
            type=row.type,
            queue=row.queue,
            status="dead",
            attempts=row.attempts,
            enqueued_at=row.created_at,
            reason=row.reason,
            error=f"{row.error_type}: {row.error_summary}",
            fingerprint=row.fingerprint,
        )


def _finished() -> Iterator[JobRecord]:
    for row in JobHistory.objects.filter(tenant__startswith=PREFIX):
        yield JobRecord(
            id=str(row.job_id),
            type=row.type,
            queue=row.queue,
            status=row.status,
            attempts=row.attempts,
            enqueued_at=row.enqueued_at,
            started_at=row.started_at,
            result=row.result,
            metrics=row.metrics,
        )


def _mails(file: Path) -> Iterator[MailRecord]:
    """The file backend ends each message with a line of dashes, and may put several into one file."""
    for content in file.read_bytes().split(MAIL_END)[:-1]:
        message = message_from_bytes(content)
        yield MailRecord(
            kind=str(message[mails.KIND]),
            to=str(message["To"]),
            order=str(message.get(mails.ORDER, "")),
            job=str(message[mails.JOB]),
            attachments=dict(_attachments(message)),
            written_at=file.stat().st_mtime,
        )


def _attachments(message: Message) -> Iterator[tuple[str, bytes]]:
    for part in message.walk():
        if name := part.get_filename():
            yield name, bytes(part.get_payload(decode=True) or b"")
