"""The shop's background work. Delays between attempts are a second here where a real shop would take minutes.

A handler runs at least once and may run again after it did its work; each says how a second run does no harm.
"""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from http import HTTPStatus
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from django_jobs import Bury, Cancel, RetryPolicy, RunningJob, Snooze, job, schedule

from . import documents, mails, partners
from .models import Customer, Invoice, Order, OrderStatus, Product, WebhookDelivery

SOON = RetryPolicy(base=timedelta(milliseconds=400), cap=timedelta(seconds=1), floor=timedelta(milliseconds=100))
STORES_ZONE = "Europe/Berlin"
CARRIERS = ("snail", "falcon", "tortoise")
LONGEST_WAIT_FOR_INVOICE = timedelta(hours=1)


class RehearsedFault(Exception):
    """Raised on request, to see what becomes of a job that fails half way."""


@job("shop.send_welcome_mail", queue="urgent", priority=5, timeout=30, retry=SOON)
def send_welcome_mail(run: RunningJob, customer_id: int) -> None:
    """Enqueued with every order; its idempotency key leaves one job for each customer."""
    customer = Customer.objects.get(pk=customer_id)
    mails.send("welcome", customer, "Welcome", "We are glad that you found us.", run=run)


@job("shop.render_invoice", queue="default", timeout=30, retry=SOON)
def render_invoice(order_id: int) -> dict[str, str]:
    """A second run writes the same file again."""
    order = Order.objects.get(pk=order_id)
    number = f"INV-{order.number}"
    file = documents.write_invoice(order, number)
    Invoice.objects.update_or_create(order=order, defaults={"number": number, "file": file})
    return {"file": file}


@job("shop.send_receipt", queue="urgent", timeout=30, retry=SOON)
def send_receipt(run: RunningJob, order_id: int) -> None:
    """Mail the invoice once it is there. ``once``: not again when a later step fails."""
    order = Order.objects.select_related("customer").get(pk=order_id)
    invoice = Invoice.objects.filter(order=order).first()
    if invoice is None:
        _wait_for_invoice(order)
        return
    with run.once("mail") as first:
        if first:
            body = f"Thank you for order {order.number}. The invoice is attached."
            file = settings.SHOP_DIR / invoice.file
            mails.send("receipt", order.customer, "Your receipt", body, run=run, order=order, attachment=file)
    _rehearse_fault(run, order)


def _wait_for_invoice(order: Order) -> None:
    """A snooze costs no attempt, so it needs an end of its own."""
    if timezone.now() - order.placed_at > LONGEST_WAIT_FOR_INVOICE:
        raise Bury("There is still no invoice to attach.")
    raise Snooze(for_=timedelta(milliseconds=500))


@job("shop.deliver_webhook", queue="default", timeout=20, retry=SOON, max_attempts=5)
def deliver_webhook(run: RunningJob, delivery_id: int) -> dict[str, str]:
    """The receiver can tell a second delivery by its Idempotency-Key, which stays the same."""
    delivery = WebhookDelivery.objects.select_related("endpoint", "order").get(pk=delivery_id)
    message = {"event": delivery.event, "order": delivery.order.number, "total": str(delivery.order.total)}
    key = run.idempotency_key_for("webhook")
    try:
        partners.post(delivery.endpoint.url, message, key=key)
    except partners.PartnerRefused as refusal:
        if refusal.status != HTTPStatus.GONE:
            raise
        delivery.endpoint.is_active = False
        delivery.endpoint.save(update_fields=["is_active"])
        raise Bury(f"The endpoint is gone for good: {refusal}") from refusal
    delivery.delivered_at = timezone.now()
    delivery.save(update_fields=["delivered_at"])
    return {"key": key}


@job("shop.book_shipment", queue="default", timeout=20, retry=SOON)
async def book_shipment(order_id: int) -> dict[str, str]:
    """Ask all carriers at once and take the cheapest. A second run replaces the booking."""
    order = await Order.objects.aget(pk=order_id)
    questions = (f"/carriers/{name}/offers/{order.number}" for name in CARRIERS)
    offers = await asyncio.gather(*(asyncio.to_thread(partners.ask, question) for question in questions))
    best = min(offers, key=lambda offer: offer["price"])
    booking = {"carrier": best["carrier"], "tracking_code": best["tracking_code"]}
    await Order.objects.filter(pk=order_id).aupdate(**booking)
    return booking


@job("shop.award_points", queue="default", timeout=30, retry=SOON, atomic=True)
def award_points(run: RunningJob, order_id: int) -> None:
    """A point for each whole euro. ``atomic``: points and the job's end commit together."""
    order = Order.objects.get(pk=order_id)
    Customer.objects.filter(pk=order.customer_id).update(points=F("points") + int(order.total))
    _rehearse_fault(run, order)


@job("shop.print_gift_card", queue="bulk", timeout=30, retry=SOON)
def print_gift_card(order_id: int) -> dict[str, str]:
    """A second run writes the same file again."""
    return {"file": documents.write_gift_card(Order.objects.select_related("customer").get(pk=order_id))}


@job("shop.ask_for_review", queue="bulk", timeout=30, retry=SOON)
def ask_for_review(run: RunningJob, order_id: int) -> None:
    """Runs ``SHOP_REVIEW_DELAY`` after the order, unless that was cancelled."""
    order = Order.objects.select_related("customer").get(pk=order_id)
    if order.status == OrderStatus.CANCELLED:
        raise Cancel("The order was cancelled.")
    with run.once("mail") as first:
        if first:
            mails.send("review", order.customer, "How did you like it?", "Tell others.", run=run, order=order)


@job("shop.sync_to_erp", queue="bulk", timeout=20, retry=SOON, max_attempts=3)
def sync_to_erp(run: RunningJob, order_id: int) -> None:
    """Book a business customer's order in the ERP system."""
    order = Order.objects.get(pk=order_id)
    message: dict[str, Any] = {"number": order.number, "total": str(order.total)}
    partners.post(partners.partner_url("/erp/orders"), message, key=run.idempotency_key_for("erp"))


@job("shop.send_campaign_mail", queue="bulk", timeout=30, retry=SOON)
def send_campaign_mail(run: RunningJob, customer_id: int, subject: str) -> None:
    customer = Customer.objects.get(pk=customer_id)
    with run.once("mail") as first:
        if first:
            mails.send("campaign", customer, subject, "Everything must go.", run=run)


@job("shop.report_stock", queue="bulk", timeout=timedelta(minutes=5), retry=SOON)
def report_stock(run: RunningJob, store: str, day: date) -> dict[str, str]:
    """A store's products with their stock, as CSV; shows how far it is and reports how much it did."""
    products = Product.objects.filter(store=store).order_by("sku")
    count = products.count()
    rows: list[tuple[object, ...]] = [("sku", "name", "stock")]
    for done, product in enumerate(products, start=1):
        rows.append((product.sku, product.name, product.stock))
        run.progress(done / count, f"{done} of {count} products")
    run.report(rows_processed=count)
    return {"file": documents.write_report(f"stock-{store}-{day}", rows)}


@job("shop.report_all_stock", queue="bulk", timeout=30, retry=SOON, atomic=True)
def report_all_stock(run: RunningJob) -> None:
    """A report of each store about the day before the slot, however late this runs. ``atomic``: ordered once."""
    night = run.scheduled_for or timezone.now()
    day = timezone.localdate(night, ZoneInfo(STORES_ZONE)) - timedelta(days=1)
    stores = Product.objects.order_by("store").values_list("store", flat=True).distinct()
    report_stock.enqueue_many([{"store": store, "day": day} for store in stores], spread=run.jitter)


schedule(
    "nightly-stock-reports",
    type=report_all_stock,
    cron="30 2 * * *",
    timezone=STORES_ZONE,
    jitter=timedelta(minutes=5),
    overlap="skip",
    expect_success_within=timedelta(hours=25),
)


def _rehearse_fault(run: RunningJob, order: Order) -> None:
    if run.attempt == 1 and order.number in settings.SHOP_FAIL_FIRST_ATTEMPT:
        raise RehearsedFault(f"Order {order.number} was to fail in its first attempt.")
