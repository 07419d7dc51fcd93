"""What the shop's own tables, the mails, the files and the other companies must have seen."""

from __future__ import annotations

import csv
import json
from collections import Counter

from django.conf import settings

from testproject.shop import documents
from testproject.shop.checkout import GIFT_WRAP
from testproject.shop.demo.cast import NORTH
from testproject.shop.demo.evidence import Evidence
from testproject.shop.demo.story import Story
from testproject.shop.models import Invoice, OrderLine, OrderStatus

from .verdict import Problems, check, differences, unequal


@check
def orders_stand(story: Story, evidence: Evidence) -> Problems:
    """The placed orders are in the database, and no other."""
    yield from differences("order", (scene.number for scene in story.placed), evidence.orders)


@check
def nothing_got_out(story: Story, evidence: Evidence) -> Problems:
    """No mail, file or request mentions an order that was rolled back."""
    told = [mail.order for mail in evidence.mails]
    told += [name for folder in documents.FOLDERS for name in evidence.files(folder)]
    told += [f"{request.path} {json.dumps(request.body)}" for request in evidence.requests]
    for scene in story.rolled_back:
        for trace in told:
            if scene.number in trace:
                yield f"order {scene.number} was rolled back and left a trace: {trace}"


@check
def one_welcome_each(story: Story, evidence: Evidence) -> Problems:
    """Every customer with an order was welcomed by one mail, however many orders followed."""
    customers = {scene.customer for scene in story.placed}
    yield from differences("welcome mail to", customers, _addressees(evidence, "welcome"))


@check
def one_receipt_each(story: Story, evidence: Evidence) -> Problems:
    """Every order got one receipt with its invoice, also where the job failed after mailing it."""
    yield from differences("receipt of order", (scene.number for scene in story.placed), _about(evidence, "receipt"))
    invoices = evidence.files(documents.INVOICES)
    for mail in evidence.mails:
        if mail.kind == "receipt":
            name = f"INV-{mail.order}"
            if mail.attachments != {f"{name}.pdf": invoices[name].read_bytes()}:
                yield f"the receipt of order {mail.order} has attached: {', '.join(mail.attachments) or 'nothing'}"


@check
def one_invoice_each(story: Story, evidence: Evidence) -> Problems:
    """Every order has one invoice, a complete PDF that names it."""
    expected = [f"INV-{scene.number}" for scene in story.placed]
    yield from differences("invoice file", expected, evidence.files(documents.INVOICES))
    rows = Invoice.objects.filter(order__number__in=evidence.orders).values_list("number", flat=True)
    yield from differences("invoice row", expected, rows)
    for name, file in evidence.files(documents.INVOICES).items():
        content = file.read_bytes()
        if not content.startswith(b"%PDF") or b"%%EOF" not in content[-8:] or name.encode() not in content:
            yield f"{file.name} is no complete PDF that names {name}"


@check
def gift_cards(story: Story, evidence: Evidence) -> Problems:
    """Gift cards were printed for the orders that got paper, and for no other."""
    expected = [scene.number for scene in story.placed if scene.has("shop.print_gift_card")]
    yield from differences("gift card", expected, evidence.files(documents.GIFT_CARDS))


@check
def endpoints_know(story: Story, evidence: Evidence) -> Problems:
    """Every endpoint that is alive took every order of its store once."""
    alive = [delivery for delivery in evidence.deliveries if delivery.endpoint.is_active]
    accepted = [
        f"{request.path} {request.body['order']}"
        for request in evidence.requests
        if request.path.startswith("/hooks") and request.status == 200
    ]
    expected = [f"{_path(delivery.endpoint.url)} {delivery.order.number}" for delivery in alive]
    yield from differences("delivery", expected, accepted)
    for delivery in evidence.deliveries:
        if (delivery.delivered_at is not None) != delivery.endpoint.is_active:
            yield f"delivery {delivery.pk} of order {delivery.order.number}: delivered {delivery.delivered_at}"


@check
def cheapest_carrier(story: Story, evidence: Evidence) -> Problems:
    """Every order goes by the cheapest of the carriers that were asked."""
    offers: dict[str, list[tuple[float, str]]] = {}
    for request in evidence.requests:
        if request.path.startswith("/carriers"):
            offer = (request.answer["price"], request.answer["tracking_code"])
            offers.setdefault(request.path.rpartition("/")[2], []).append(offer)
    expected = {number: min(made)[1] for number, made in offers.items()}
    found = {number: order.tracking_code for number, order in evidence.orders.items()}
    yield from unequal("tracking code of order", expected, found)


@check
def points_add_up(story: Story, evidence: Evidence) -> Problems:
    """Every customer has the points of each order once, also where the job failed after adding them."""
    expected = Counter(dict.fromkeys(evidence.customers, 0))
    for order in evidence.orders.values():
        expected[order.customer.email] += int(order.total)
    found = {email: customer.points for email, customer in evidence.customers.items()}
    yield from unequal("points of", expected, found)


@check
def reviews_asked(story: Story, evidence: Evidence) -> Problems:
    """Every order that was not cancelled got one question for a review."""
    expected = [scene.number for scene in story.placed if not scene.cancelled]
    yield from differences("question about order", expected, _about(evidence, "review"))


@check
def campaign_reached_all(story: Story, evidence: Evidence) -> Problems:
    """The campaign reached every customer of its store once."""
    expected = [email for email, customer in evidence.customers.items() if customer.store == NORTH]
    yield from differences("campaign mail to", expected, _addressees(evidence, "campaign"))


@check
def erp_was_tried(story: Story, evidence: Evidence) -> Problems:
    """The ERP system was asked for each business order, as often as the job type says."""
    expected = [scene.number for scene in story.placed if scene.has("shop.sync_to_erp")] * 3
    asked = [request.body["number"] for request in evidence.requests if request.path == "/erp/orders"]
    yield from differences("ERP request for order", expected, asked)


@check
def stock_adds_up(story: Story, evidence: Evidence) -> Problems:
    """The shelves hold what nobody bought."""
    expected = Counter(story.stock)
    lines = OrderLine.objects.select_related("product", "order").filter(order__number__in=evidence.orders)
    for line in lines.exclude(order__status=OrderStatus.CANCELLED):
        expected[line.product.shelf] -= line.quantity
    for order in evidence.orders.values():
        if order.gift_note:
            expected[f"{order.customer.store}/{GIFT_WRAP}"] -= 1
    yield from unequal("stock of", expected, {product.shelf: product.stock for product in evidence.products})


@check
def report_is_complete(story: Story, evidence: Evidence) -> Problems:
    """The nightly report lists every product of its store, and says how many it did."""
    products = [product for product in evidence.products if product.store == NORTH]
    for job in evidence.of_type("shop.report_stock"):
        if job.metrics != {"rows_processed": len(products)}:
            yield f"job {job.id} reported {job.metrics}, expected {len(products)} rows"
        with (settings.SHOP_DIR / job.result["file"]).open(newline="") as stream:
            rows = {row["sku"]: row["stock"] for row in csv.DictReader(stream)}
        yield from unequal("reported stock of", {product.sku: str(product.stock) for product in products}, rows)


def _addressees(evidence: Evidence, kind: str) -> list[str]:
    return [mail.to for mail in evidence.mails if mail.kind == kind]


def _about(evidence: Evidence, kind: str) -> list[str]:
    return [mail.order for mail in evidence.mails if mail.kind == kind]


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]
