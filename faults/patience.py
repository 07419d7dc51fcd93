"""Waiting for what a database says that may be away."""

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from tests.waiting import wait_for

T = TypeVar("T")


def wait_patiently(condition: Callable[[], T | None], timeout: float, what: str) -> T:
    """While the database is away, the condition does not hold. AssertionError after ``timeout`` seconds."""
    return wait_for(lambda: _seen(condition), timeout, what)


def _seen(condition: Callable[[], T | None]) -> T | None:
    try:
        return condition()
    except (OperationalError, InterfaceError):
        connection.close()
        return None
