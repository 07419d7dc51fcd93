"""The job types that the operations' tests enqueue. Most of their bodies never run."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django_jobs import RunningJob, job


@job("operations.note")
def note(text: str = "", number: int = 0): ...


@job("operations.other_note")
def other_note(text: str = "", number: int = 0): ...


@job("operations.urgent", queue="urgent", priority=5, max_attempts=3)
def urgent(run: RunningJob, text: str = ""): ...


@job("operations.anything")
def anything(value: Any = None): ...


@dataclass
class Line:
    sku: str
    price: Decimal


@job("operations.order")
def order(id: UUID, at: datetime, lines: list[Line], tags: dict[str, int] | None = None): ...


@job("operations.async")
async def async_note(text: str = ""): ...
