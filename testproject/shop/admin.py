"""The shop in the admin, plain."""

from __future__ import annotations

from django.contrib import admin

from .models import Customer, Invoice, Order, OrderLine, Product, WebhookDelivery, WebhookEndpoint


class OrderLineInline(admin.TabularInline):  # type: ignore[type-arg]
    model = OrderLine
    extra = 0


admin.site.register(
    Customer,
    list_display=["name", "store", "email", "is_business", "points"],
    list_filter=["store", "is_business"],
    search_fields=["name", "email"],
)
admin.site.register(
    Product,
    list_display=["sku", "name", "store", "price", "stock"],
    list_filter=["store"],
    search_fields=["sku", "name"],
)
admin.site.register(
    Order,
    list_display=["number", "customer", "total", "status", "carrier", "placed_at"],
    list_filter=["status", "customer__store"],
    list_select_related=["customer"],
    inlines=[OrderLineInline],
)
admin.site.register(Invoice, list_display=["number", "order", "file", "rendered_at"], list_select_related=["order"])
admin.site.register(WebhookEndpoint, list_display=["url", "store", "is_active"], list_filter=["store", "is_active"])
admin.site.register(
    WebhookDelivery,
    list_display=["event", "endpoint", "order", "delivered_at"],
    list_select_related=["endpoint", "order"],
)
