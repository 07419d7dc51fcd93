"""The viewer's time zone: the one that the project activated for the request, else the browser's, which the pages'
script leaves in a cookie.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone

COOKIE = "django_jobs_zone"
LONGEST_NAME = 64


def viewer_zone(request: HttpRequest) -> AbstractContextManager[object]:
    browser = _zone_named(request.COOKIES.get(COOKIE, ""))
    if browser is None or timezone.get_current_timezone_name() != timezone.get_default_timezone_name():
        return nullcontext()
    return timezone.override(browser)


def zone_label() -> str:
    """The name of the zone in which this page's times are printed."""
    return timezone.get_current_timezone_name()


def _zone_named(name: str) -> ZoneInfo | None:
    if not name or len(name) > LONGEST_NAME:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name at all, or a folder
        return None
