"""The shop's mails. Each says in its headers what it is, for which order, and which job sent it."""

from __future__ import annotations

from pathlib import Path

from django.core.mail import EmailMessage

from django_jobs import RunningJob

from .models import Customer, Order

KIND, ORDER, JOB = "X-Shop-Mail", "X-Shop-Order", "X-Job-Id"


def send(
    kind: str,
    customer: Customer,
    subject: str,
    body: str,
    *,
    run: RunningJob,
    order: Order | None = None,
    attachment: Path | None = None,
) -> None:
    headers = {KIND: kind, JOB: str(run.id)}
    if order is not None:
        headers[ORDER] = order.number
    text = f"Dear {customer.name},\n\n{body}\n\nYour shop\n"
    mail = EmailMessage(subject, text, to=[customer.email], headers=headers)
    if attachment is not None:
        mail.attach_file(str(attachment))
    mail.send()
