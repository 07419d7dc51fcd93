"""Talking to other companies over HTTP: the merchants' webhooks, the carriers, the ERP system."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from django.conf import settings

TIMEOUT = 5  # seconds


class PartnerRefused(Exception):
    """The other side answered, but not with success.

    ``retry_after``: the pause in seconds it asked for, which the job's next attempt honours.
    """

    def __init__(self, request: Request, error: HTTPError) -> None:
        reason = HTTPStatus(error.code).phrase
        super().__init__(f"{request.get_method()} {request.selector} was answered {error.code} {reason}")
        self.status = error.code
        self.retry_after = error.headers.get("Retry-After")


def post(url: str, body: dict[str, Any], *, key: str) -> dict[str, Any]:
    """POST JSON. ``key`` goes along as Idempotency-Key, so that the other side knows a repetition for one."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    return _answer(Request(url, data=json.dumps(body).encode(), headers=headers))


def ask(path: str) -> dict[str, Any]:
    """GET JSON from the partners' address in the settings."""
    return _answer(Request(partner_url(path)))


def partner_url(path: str) -> str:
    return f"{settings.SHOP_PARTNER_URL}{path}"


def _answer(request: Request) -> dict[str, Any]:
    try:
        with urlopen(request, timeout=TIMEOUT) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except HTTPError as error:
        with error:
            raise PartnerRefused(request, error) from None
