"""Buying: an order, its goods and all its jobs commit together, or nothing of it ever happened."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F

from django_jobs import EnqueuedJob, cancel, enqueue
from django_jobs.handle import JobHandle

from . import jobs
from .models import Customer, Order, OrderLine, OrderStatus, Product, WebhookDelivery, WebhookEndpoint

GIFT_WRAP = "GIFT-WRAP"
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


class CheckoutFailed(Exception):
    """There is no order."""


class OutOfStock(CheckoutFailed):
    """Fewer pieces are left than were asked for."""


class PaymentDeclined(CheckoutFailed):
    """The bank does not want this card to pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """So many of this product."""

    sku: str
    quantity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedJob:
    """``type`` is the job type's name."""

    type: str
    job: EnqueuedJob


def place_order(customer: Customer, lines: Sequence[Line], *, card: str = "visa", gift_note: str = "") -> Order:
    """Place an order. Raises OutOfStock or PaymentDeclined; then nothing was ordered and no job is left."""
    return Checkout(customer, lines, card=card, gift_note=gift_note).place()


def cancel_order(order: Order) -> None:
    """Put the goods back and call off the question for a review. What was mailed stays mailed."""
    with transaction.atomic():
        for line in order.lines.all():
            Product.objects.filter(pk=line.product_id).update(stock=F("stock") + line.quantity)
        order.status = OrderStatus.CANCELLED
        order.save(update_fields=["status"])
        if order.review_job is not None:
            cancel(order.review_job)


class Checkout:
    """One attempt to place an order. ``jobs``: what it enqueued. ``undone``: what a savepoint took back."""

    def __init__(self, customer: Customer, lines: Sequence[Line], *, card: str = "visa", gift_note: str = "") -> None:
        self.customer, self.lines = customer, lines
        self.card, self.gift_note = card, gift_note
        self.jobs: list[OrderedJob] = []
        self.undone: list[OrderedJob] = []

    def place(self) -> Order:
        with transaction.atomic():
            self.order = Order.objects.create(number=_new_number(), customer=self.customer)
            self._welcome()
            self._take_goods()
            if self.gift_note:
                self._wrap()
            self._plan_the_rest()
            _reserve_payment(self.card)
        return self.order

    def _welcome(self) -> None:
        customer = self.customer.pk
        self._enqueue(jobs.send_welcome_mail, {"customer_id": customer}, idempotency_key=f"welcome:{customer}")

    def _take_goods(self) -> None:
        products = _take(self.customer.store, {line.sku: line.quantity for line in self.lines})
        for line in self.lines:
            product = products[line.sku]
            OrderLine.objects.create(order=self.order, product=product, quantity=line.quantity, price=product.price)
            self.order.total += line.quantity * product.price
        self.order.save()

    def _wrap(self) -> None:
        """Without paper there is no gift card either, but still an order."""
        self.order.gift_note = self.gift_note
        try:
            with transaction.atomic():
                self.order.save()
                self._enqueue(jobs.print_gift_card, {"order_id": self.order.pk})
                _take(self.customer.store, {GIFT_WRAP: 1})
        except OutOfStock:
            self.undone.append(self.jobs.pop())
            self.order.gift_note = ""

    def _plan_the_rest(self) -> None:
        payload = {"order_id": self.order.pk}
        for handle in (jobs.render_invoice, jobs.send_receipt, jobs.book_shipment, jobs.award_points):
            self._enqueue(handle, payload)
        if self.customer.is_business:
            self._enqueue(jobs.sync_to_erp, payload)
        self._tell_endpoints()
        review = self._enqueue(jobs.ask_for_review, payload, delay=settings.SHOP_REVIEW_DELAY)
        self.order.review_job = review.id
        self.order.save()

    def _tell_endpoints(self) -> None:
        for endpoint in WebhookEndpoint.objects.filter(store=self.customer.store, is_active=True):
            delivery = WebhookDelivery.objects.create(endpoint=endpoint, order=self.order)
            self._enqueue(jobs.deliver_webhook, {"delivery_id": delivery.pk})

    def _enqueue(self, handle: JobHandle, payload: dict[str, Any], **options: Any) -> EnqueuedJob:
        job = handle.using(tenant=self.customer.store, **options).enqueue(**payload)
        self.jobs.append(OrderedJob(type=handle.job_type.name, job=job))
        return job


def announce_campaign(store: str, subject: str, *, over: timedelta) -> list[OrderedJob]:
    """A mail to every customer of the store, enqueued in one statement and spread ``over`` some time."""
    customers = Customer.objects.filter(store=store).order_by("pk").values_list("pk", flat=True)
    payloads = [{"customer_id": customer, "subject": subject} for customer in customers]
    handle = jobs.send_campaign_mail
    enqueued = handle.using(tenant=store).enqueue_many(payloads, spread=over)
    return [OrderedJob(type=handle.job_type.name, job=job) for job in enqueued]


def order_stock_report(store: str, day: date) -> OrderedJob:
    """By name, as a caller would that cannot import the handler; however often it is called, once a day."""
    name = "shop.report_stock"
    job = enqueue(name, {"store": store, "day": day}, tenant=store, idempotency_key=f"stock:{store}:{day}")
    return OrderedJob(type=name, job=job)


def _take(store: str, quantities: Mapping[str, int]) -> dict[str, Product]:
    """Take pieces from the shelves, locked in one order, so that no two checkouts wait in a circle."""
    products = Product.objects.select_for_update().filter(store=store, sku__in=quantities).order_by("pk")
    taken = {product.sku: product for product in products}
    for sku, quantity in quantities.items():
        product = taken.get(sku)
        if product is None or product.stock < quantity:
            raise OutOfStock(f"{sku}: {quantity} wanted, {product.stock if product else 0} left.")
        product.stock -= quantity
        product.save(update_fields=["stock"])
    return taken


def _reserve_payment(card: str) -> None:
    """Called last, so that nothing is reserved for an order that cannot be. Unbooked reservations lapse."""
    if card == "declined":
        raise PaymentDeclined("The bank declined the card.")


def _new_number() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(6))
