"""What the shop knows. A *store* is the tenant: one merchant on the platform, named by a slug."""

from __future__ import annotations

from decimal import Decimal

from django.db import models


class Customer(models.Model):
    """``is_business``: their orders also go to the ERP system."""

    store = models.SlugField()
    name = models.CharField(max_length=100)
    email = models.EmailField()
    is_business = models.BooleanField(default=False)
    points = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["store", "email"], name="shop_customer_once_a_store"),)

    def __str__(self) -> str:
        return self.name


class Product(models.Model):
    """``stock`` never goes below zero: the database refuses."""

    store = models.SlugField()
    sku = models.CharField(max_length=40)
    name = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    stock = models.PositiveIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["store", "sku"], name="shop_product_once_a_store"),)

    def __str__(self) -> str:
        return self.name

    @property
    def shelf(self) -> str:
        return f"{self.store}/{self.sku}"


class OrderStatus(models.TextChoices):
    PLACED = "placed"
    CANCELLED = "cancelled"


class Order(models.Model):
    """``review_job`` is the job that will ask for a review, so that a cancelled order can call it off."""

    number = models.CharField(max_length=20, unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="orders")
    status = models.CharField(max_length=20, choices=OrderStatus, default=OrderStatus.PLACED)
    total = models.DecimalField(max_digits=10, decimal_places=2, default=Decimal(0))
    gift_note = models.CharField(max_length=200, blank=True)
    carrier = models.CharField(max_length=40, blank=True)
    tracking_code = models.CharField(max_length=60, blank=True)
    review_job = models.UUIDField(null=True, blank=True)
    placed_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.number


class OrderLine(models.Model):
    """``price`` is that of one piece on the day of the order."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    quantity = models.PositiveSmallIntegerField()
    price = models.DecimalField(max_digits=8, decimal_places=2)

    def __str__(self) -> str:
        return f"{self.quantity} x {self.product}"


class Invoice(models.Model):
    """``file`` is relative to ``SHOP_DIR``. The row exists once the file is complete."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE)
    number = models.CharField(max_length=30, unique=True)
    file = models.CharField(max_length=200)
    rendered_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.number


class WebhookEndpoint(models.Model):
    """A URL of the merchant's that wants to hear of every order of the store."""

    store = models.SlugField()
    url = models.URLField()
    is_active = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """One message to one endpoint; delivered when ``delivered_at`` says so."""

    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40, default="order.placed")
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"

    def __str__(self) -> str:
        return f"{self.event} to {self.endpoint}"
