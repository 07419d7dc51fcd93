"""The shop's promise: an order, its goods and its jobs, or nothing."""

from collections import Counter
from datetime import date, timedelta

import pytest
from django.db import transaction

from django_jobs import get_job
from django_jobs.exceptions import JobNotFound
from django_jobs.models import Job, JobHistory

pytestmark = pytest.mark.usefixtures("shop")

FOR_EVERY_ORDER = {
    "shop.render_invoice": 1,
    "shop.send_receipt": 1,
    "shop.book_shipment": 1,
    "shop.award_points": 1,
    "shop.ask_for_review": 1,
}


@pytest.fixture
def customer():
    return make_customer()


def make_customer(**fields):
    from testproject.shop.models import Customer, Product

    Product.objects.get_or_create(store="north", sku="MUG", defaults={"name": "Mug", "price": "7.90", "stock": 5})
    return Customer.objects.create(store="north", name="Ada", email="ada@example.com", **fields)


def new_checkout(customer, quantity=1, **extras):
    from testproject.shop.checkout import Checkout, Line

    return Checkout(customer, [Line(sku="MUG", quantity=quantity)], **extras)


def place(customer, **extras):
    return new_checkout(customer, **extras).place()


def add_gift_paper(pieces):
    from testproject.shop.models import Product

    Product.objects.create(store="north", sku="GIFT-WRAP", name="Gift wrap", price=0, stock=pieces)


def waiting_jobs():
    return Counter(Job.objects.values_list("type", flat=True))


def mugs_left():
    from testproject.shop.models import Product

    return Product.objects.get(sku="MUG").stock


def test_a_placed_order_has_all_its_jobs(customer):
    place(customer, quantity=2)
    assert waiting_jobs() == FOR_EVERY_ORDER | {"shop.send_welcome_mail": 1}
    assert mugs_left() == 3


def test_the_jobs_belong_to_the_customers_store(customer):
    place(customer)
    assert set(Job.objects.values_list("tenant", flat=True)) == {"north"}


def test_a_business_customers_order_also_goes_to_the_erp_system():
    place(make_customer(is_business=True))
    assert waiting_jobs()["shop.sync_to_erp"] == 1


def test_every_active_endpoint_of_the_store_gets_a_delivery(customer):
    from testproject.shop.models import WebhookEndpoint

    for store, is_active in (("north", True), ("north", True), ("north", False), ("south", True)):
        WebhookEndpoint.objects.create(store=store, url="http://127.0.0.1:1/", is_active=is_active)
    place(customer)
    assert waiting_jobs()["shop.deliver_webhook"] == 2


def test_out_of_stock_leaves_neither_order_nor_job(customer):
    from testproject.shop.checkout import OutOfStock
    from testproject.shop.models import Order

    checkout = new_checkout(customer, quantity=6)
    with pytest.raises(OutOfStock, match="MUG: 6 wanted, 5 left"):
        checkout.place()
    assert checkout.jobs
    assert not Order.objects.exists()
    assert not waiting_jobs()
    assert mugs_left() == 5


def test_a_declined_card_takes_back_every_job_and_the_goods(customer):
    from testproject.shop.checkout import PaymentDeclined
    from testproject.shop.models import Order

    checkout = new_checkout(customer, card="declined")
    with pytest.raises(PaymentDeclined):
        checkout.place()
    assert len(checkout.jobs) == 1 + len(FOR_EVERY_ORDER)
    for ordered in checkout.jobs:
        with pytest.raises(JobNotFound):
            get_job(ordered.job.id)
    assert not Order.objects.exists()
    assert mugs_left() == 5


def test_a_callers_rollback_takes_back_the_order_and_its_jobs(customer):
    from testproject.shop.models import Order

    with transaction.atomic():
        place(customer)
        assert waiting_jobs()
        transaction.set_rollback(True)
    assert not Order.objects.exists()
    assert not waiting_jobs()


def test_a_customer_is_welcomed_once_however_many_orders_follow(customer):
    checkouts = [new_checkout(customer) for _ in range(2)]
    for checkout in checkouts:
        checkout.place()
    first, second = (checkout.jobs[0].job for checkout in checkouts)
    assert first.id == second.id
    assert [first.duplicate, second.duplicate] == [False, True]
    assert waiting_jobs()["shop.send_welcome_mail"] == 1


def test_a_rolled_back_order_does_not_use_up_the_welcome(customer):
    from testproject.shop.checkout import OutOfStock

    with pytest.raises(OutOfStock):
        place(customer, quantity=6)
    checkout = new_checkout(customer)
    checkout.place()
    assert not checkout.jobs[0].job.duplicate


def test_a_gift_gets_its_card(customer):
    add_gift_paper(pieces=1)
    assert place(customer, gift_note="For you").gift_note == "For you"
    assert waiting_jobs()["shop.print_gift_card"] == 1


def test_without_paper_the_order_stands_and_the_gift_card_does_not(customer):
    checkout = new_checkout(customer, gift_note="For you")
    order = checkout.place()
    order.refresh_from_db()
    assert order.gift_note == ""
    assert waiting_jobs() == FOR_EVERY_ORDER | {"shop.send_welcome_mail": 1}
    assert [ordered.type for ordered in checkout.undone] == ["shop.print_gift_card"]


def test_the_review_waits_for_two_weeks(customer):
    order = place(customer)
    review = Job.objects.get(pk=order.review_job)
    assert review.status == "scheduled"
    waits = review.run_at - review.created_at
    assert round(waits / timedelta(days=14), 6) == 1


def test_a_cancelled_order_gives_the_goods_back_and_calls_off_the_review(customer):
    from testproject.shop.checkout import cancel_order

    order = place(customer, quantity=3)
    cancel_order(order)
    assert mugs_left() == 5
    assert get_job(order.review_job).status == "cancelled"
    assert JobHistory.objects.get().type == "shop.ask_for_review"


def test_a_store_gets_one_stock_report_a_day_however_often_it_asks():
    from testproject.shop.checkout import order_stock_report

    first, second = (order_stock_report("north", date(2026, 11, 29)).job for _ in range(2))
    assert second.duplicate
    assert second.id == first.id
