"""The jobs that a busy shop has, and the bugs that bury some of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

STORES = ("north-star", "oak-and-sons", "pop-up-paris", "tea-house", "book-nook", "the-lamp-shop", "velo-vert")
QUARTER = timedelta(minutes=15)
HOSTS = ("jobs-7f9c4d6b8-2xk", "jobs-7f9c4d6b8-9fl", "jobs-7f9c4d6b8-kw4", "jobs-7f9c4d6b8-tq7")
TRACEBACK = """Traceback (most recent call last):
  File "/app/shop/jobs.py", line {line}, in {function}
    {code}
  File "/app/shop/partners.py", line 41, in post
    response = urlopen(request, timeout=TIMEOUT)
{error}: {message}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A job type of the shop. ``ms``: how long it usually takes; ``share``: of all jobs."""

    name: str
    queue: str
    priority: int
    ms: int
    share: int
    field: str = "order_id"


KINDS = (
    Kind(name="shop.send_welcome_mail", queue="urgent", priority=5, ms=180, share=10, field="customer_id"),
    Kind(name="shop.send_receipt", queue="urgent", priority=0, ms=240, share=22),
    Kind(name="shop.render_invoice", queue="default", priority=0, ms=620, share=22),
    Kind(name="shop.deliver_webhook", queue="default", priority=0, ms=310, share=30, field="delivery_id"),
    Kind(name="shop.book_shipment", queue="default", priority=0, ms=900, share=18),
    Kind(name="shop.award_points", queue="default", priority=0, ms=25, share=22),
    Kind(name="shop.sync_to_erp", queue="bulk", priority=0, ms=1400, share=6),
    Kind(name="shop.report_stock", queue="bulk", priority=-5, ms=42_000, share=1, field="store"),
)
BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One bug: ``{n}`` and the like in the message differ from job to job."""

    type: str
    error: str
    message: str
    function: str
    code: str
    line: int
    jobs: int
    since: timedelta
    until: timedelta = timedelta(0)
    attempts: int = 12
    reason: str = "exhausted"


FAULTS = (
    Fault(
        type="shop.deliver_webhook",
        error="urllib.error.HTTPError",
        message="HTTP Error 503: Service Unavailable (https://hooks.{store}.example/orders/{n})",
        function="deliver_webhook",
        code="partners.post(delivery.endpoint.url, message, key=key)",
        line=96,
        jobs=1264,
        since=timedelta(hours=7),
        attempts=5,
    ),
    Fault(
        type="shop.sync_to_erp",
        error="django_jobs.exceptions.RunTimedOut",
        message="The run took longer than 20 s.",
        function="sync_to_erp",
        code='partners.post(partners.partner_url("/erp/orders"), message)',
        line=172,
        jobs=212,
        since=timedelta(hours=21),
        until=timedelta(hours=2),
        attempts=3,
        reason="timeout",
    ),
    Fault(
        type="shop.render_invoice",
        error="decimal.InvalidOperation",
        message="[<class 'decimal.ConversionSyntax'>] while adding line {n} of order SO-{n}",
        function="render_invoice",
        code="file = documents.write_invoice(order, number)",
        line=58,
        jobs=37,
        since=timedelta(minutes=40),
    ),
    Fault(
        type="shop.send_receipt",
        error="smtplib.SMTPRecipientsRefused",
        message="{{'customer{n}@{store}.example': (550, b'5.1.1 User unknown')}}",
        function="send_receipt",
        code='mails.send("receipt", order.customer, "Your receipt", body)',
        line=74,
        jobs=18,
        since=timedelta(hours=23),
    ),
    Fault(
        type="shop.print_gift_card",
        error="django_jobs.exceptions.WorkerLost",
        message="Worker jobs-7f9c4d6b8-9fl:11 went away while it ran this job.",
        function="print_gift_card",
        code="",
        line=0,
        jobs=3,
        since=timedelta(hours=5),
        attempts=3,
        reason="worker_lost",
    ),
)
