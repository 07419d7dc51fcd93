"""The shop's files: invoices, gift cards, stock reports. A file is there complete or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from .models import Order

if TYPE_CHECKING:
    from fpdf import FPDF

FOLDERS = INVOICES, GIFT_CARDS, REPORTS = "invoices", "gift-cards", "reports"


def write_invoice(order: Order, number: str) -> str:
    """Return the file's path below ``SHOP_DIR``."""
    pdf = _blank_page(f"Invoice {number}")
    pdf.set_font("helvetica", size=11)
    for line in order.lines.select_related("product").order_by("pk"):
        pdf.cell(140, 8, _latin(f"{line.quantity} x {line.product.name}"))
        pdf.cell(40, 8, f"{line.quantity * line.price:.2f} EUR", align="R")
        pdf.ln(8)
    pdf.set_font("helvetica", "B", 11)
    pdf.cell(180, 12, f"Total {order.total:.2f} EUR", align="R")
    return _keep(bytes(pdf.output()), f"{INVOICES}/{number}.pdf")


def write_gift_card(order: Order) -> str:
    """Return the file's path below ``SHOP_DIR``."""
    pdf = _blank_page(f"A gift from {order.customer.name}")
    pdf.set_font("helvetica", "I", 16)
    pdf.multi_cell(180, 10, _latin(order.gift_note))
    return _keep(bytes(pdf.output()), f"{GIFT_CARDS}/{order.number}.pdf")


def write_report(name: str, rows: Iterable[tuple[object, ...]]) -> str:
    """Return the file's path below ``SHOP_DIR``."""
    path = _ready(f"{REPORTS}/{name}.csv")
    with path.with_suffix(".part").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    path.with_suffix(".part").replace(path)
    return f"{REPORTS}/{name}.csv"


def _blank_page(title: str) -> FPDF:
    from fpdf import FPDF  # noqa: PLC0415 - half a second, which only the worker has to spend

    pdf = FPDF()
    pdf.set_title(title)
    pdf.add_page()
    pdf.set_font("helvetica", "B", 20)
    pdf.cell(180, 20, _latin(title))
    pdf.ln(24)
    return pdf


def _keep(content: bytes, name: str) -> str:
    path = _ready(name)
    path.with_suffix(".part").write_bytes(content)
    path.with_suffix(".part").replace(path)
    return name


def _ready(name: str) -> Path:
    path: Path = settings.SHOP_DIR / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _latin(text: str) -> str:
    """What the PDF's built-in fonts can show."""
    return text.encode("latin-1", "replace").decode("latin-1")
