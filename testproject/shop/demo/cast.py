"""Who takes part: three stores with their products, customers and endpoints. Their names begin with ``demo-``."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from uuid import UUID

from django.core.management.base import CommandError
from django.db import transaction

from django_jobs.models import DeadJob, Effect, IdempotencyKey, Job, JobHistory
from testproject.shop.checkout import GIFT_WRAP
from testproject.shop.models import Customer, Order, Product, WebhookEndpoint

PREFIX = "demo-"
NORTH, SOUTH, POP_UP = "demo-north", "demo-south", "demo-pop-up"

PRODUCTS = (
    (NORTH, "TEAPOT", "Teapot, brown", "24.50", 12),
    (NORTH, "MUG", "Mug", "7.90", 9),
    (NORTH, "LAMP", "Reading lamp", "89.00", 4),
    (NORTH, GIFT_WRAP, "Gift wrap", "0.00", 1),
    (SOUTH, "DESK", "Desk, oak", "349.00", 6),
    (SOUTH, "CHAIR", "Chair, oak", "129.00", 10),
    (POP_UP, "POSTER", "Poster", "15.00", 3),
)
CUSTOMERS = (
    (NORTH, "Ada", False),
    (NORTH, "Grace", True),
    (NORTH, "Alan", False),
    (NORTH, "Linus", False),
    (SOUTH, "Barbara", False),
    (SOUTH, "Donald", False),
    (SOUTH, "Radia", True),
    (POP_UP, "Ken", False),
)
ENDPOINTS = ((NORTH, "/hooks/calm"), (SOUTH, "/hooks/moody"), (POP_UP, "/hooks/gone"))


def enter(partners: str) -> dict[str, Customer]:
    """Fill the stores. ``partners``: where the endpoints are. Returns the customers by name."""
    for store, sku, name, price, stock in PRODUCTS:
        Product.objects.create(store=store, sku=sku, name=name, price=Decimal(price), stock=stock)
    for store, path in ENDPOINTS:
        WebhookEndpoint.objects.create(store=store, url=f"{partners}{path}")
    return {
        name: Customer.objects.create(
            store=store, name=name, email=f"{name.lower()}@example.com", is_business=is_business
        )
        for store, name, is_business in CUSTOMERS
    }


def leave() -> None:
    """Remove what an earlier demo left. Raises CommandError if jobs of others wait here: the worker would run them."""
    with transaction.atomic():
        _remove_jobs()
        Order.objects.filter(customer__store__startswith=PREFIX).delete()
        for model in (Customer, Product, WebhookEndpoint):
            model._default_manager.filter(store__startswith=PREFIX).delete()
    if waiting := Job.objects.count():
        jobs = "job that is" if waiting == 1 else "jobs that are"
        raise CommandError(
            f"This database holds {waiting} unfinished {jobs} not the demo's, and the demo's worker would run them. "
            "Give the demo a database of its own: createdb demo, then DATABASE_URL=postgres://.../demo"
        )


def _remove_jobs() -> None:
    ids: set[UUID] = set()
    for model, name in ((Job, "id"), (DeadJob, "id"), (JobHistory, "job_id")):
        ours = model._default_manager.filter(tenant__startswith=PREFIX)
        ids.update(ours.values_list(name, flat=True))
        ours.delete()
    for batch in _batches(sorted(ids)):
        Effect.objects.filter(job_id__in=batch).delete()
        IdempotencyKey.objects.filter(job_id__in=batch).delete()


def _batches(ids: list[UUID], size: int = 200) -> Iterable[list[UUID]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
