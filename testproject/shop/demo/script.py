"""What happens: twenty visits to the checkout, a campaign, and the nightly report, ordered twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from testproject.shop.checkout import (
    Checkout,
    Line,
    OutOfStock,
    PaymentDeclined,
    announce_campaign,
    cancel_order,
    order_stock_report,
)
from testproject.shop.models import Customer

from .cast import NORTH, POP_UP
from .story import AskedJob, Outcome, Scene

CAMPAIGN_SPREAD = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Act:
    """``wants``: SKUs, with ``*n`` for more than one piece."""

    customer: str
    wants: str
    card: str = "visa"
    gift_note: str = ""
    fails_once: bool = False
    cancelled: bool = False


ACTS = (
    Act("Ada", "TEAPOT MUG*2"),
    Act("Grace", "LAMP"),
    Act("Ada", "MUG"),
    Act("Barbara", "DESK CHAIR*2"),
    Act("Linus", "TEAPOT LAMP*5"),
    Act("Donald", "CHAIR", fails_once=True),
    Act("Alan", "MUG", gift_note="Happy birthday, Joan!"),
    Act("Radia", "DESK"),
    Act("Alan", "TEAPOT*2", card="declined"),
    Act("Ada", "LAMP", gift_note="There is no paper left for this one."),
    Act("Ken", "POSTER"),
    Act("Barbara", "DESK*9"),
    Act("Grace", "TEAPOT"),
    Act("Donald", "CHAIR DESK", cancelled=True),
    Act("Radia", "CHAIR", card="declined"),
    Act("Alan", "TEAPOT", fails_once=True),
    Act("Barbara", "CHAIR"),
    Act("Ada", "MUG*9"),
    Act("Donald", "DESK"),
    Act("Grace", "TEAPOT MUG"),
)


def play(acts: Iterable[Act], customers: Mapping[str, Customer]) -> list[Scene]:
    return [_visit(act, customers[act.customer]) for act in acts]


def play_the_rest() -> list[AskedJob]:
    today = timezone.localdate()
    campaign = announce_campaign(NORTH, "Spring sale", over=CAMPAIGN_SPREAD)
    reports = [order_stock_report(NORTH, today), order_stock_report(NORTH, today)]
    return [AskedJob.of(ordered) for ordered in (*campaign, *reports)]


def _visit(act: Act, customer: Customer) -> Scene:
    checkout = Checkout(customer, list(_lines(act.wants)), card=act.card, gift_note=act.gift_note)
    outcome = _place(checkout)
    if act.cancelled:
        cancel_order(checkout.order)
    return Scene(
        customer=customer.email,
        number=checkout.order.number,
        outcome=outcome,
        jobs=[AskedJob.of(ordered) for ordered in checkout.jobs],
        undone=[AskedJob.of(ordered) for ordered in checkout.undone],
        fails_once=act.fails_once,
        cancelled=act.cancelled,
        endpoint_is_gone=customer.store == POP_UP,
    )


def _place(checkout: Checkout) -> Outcome:
    try:
        checkout.place()
    except OutOfStock:
        return "out of stock"
    except PaymentDeclined:
        return "declined"
    return "placed"


def _lines(wants: str) -> Iterable[Line]:
    for want in wants.split():
        sku, _, quantity = want.partition("*")
        yield Line(sku=sku, quantity=int(quantity or 1))
