"""Template tags of the admin's charts: numbers as bars, and the same in words for those who do not see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django import template
from django.utils.translation import gettext

from .django_jobs_admin import clock, number

register = template.Library()

WIDTH, HEIGHT = 720, 120


@register.inclusion_tag("admin/django_jobs/sparkline.html")
def sparkline(values: Sequence[int], label: object, tone: str = "plain") -> dict[str, Any]:
    """Bars, oldest first, and the same in words for those who do not see them."""
    top = max([*values, 1])
    bars = [
        {"x": n * 4, "y": _svg(20 - 20 * value / top), "height": _svg(20 * value / top)}
        for n, value in enumerate(values)
        if value
    ]
    said = gettext("%(total)s in all, at most %(top)s") % {
        "total": number(sum(values)),
        "top": number(max([*values, 0])),
    }
    return {"bars": bars, "width": str(max(len(values) * 4 - 1, 1)), "label": f"{label}: {said}", "tone": tone}


@register.inclusion_tag("admin/django_jobs/chart.html")
def chart(points: Iterable[Any], label: object, name: str) -> dict[str, Any]:
    """Stacked bars by minute, and a table of them. ``points``: oldest first, each with ``at``, ``good``, ``bad``."""
    points = list(points)
    top = round_ceiling(max([point.good + point.bad for point in points] + [1]))
    good, bad = sum(point.good for point in points), sum(point.bad for point in points)
    return {
        "bars": [_bar(n, point, top, WIDTH / len(points)) for n, point in enumerate(points)],
        "label": label,
        "name": name,
        "said": gettext("%(good)s succeeded, %(bad)s failed") % {"good": number(good), "bad": number(bad)},
        "top": top,
        "points": points,
        "first": points[0].at if points else None,
        "last": points[-1].at if points else None,
        "good": good,
        "bad": bad,
        "width": str(WIDTH),
        "height": str(HEIGHT),
        "middle": str(HEIGHT // 2),
    }


def _bar(n: int, point: Any, top: int, step: float) -> dict[str, str]:
    good, bad = HEIGHT * point.good / top, HEIGHT * point.bad / top
    return {
        "x": _svg(n * step),
        "width": _svg(step * 0.8),
        "good_y": _svg(HEIGHT - good),
        "good": _svg(good),
        "bad_y": _svg(HEIGHT - good - bad),
        "bad": _svg(bad),
        "said": f"{clock(point.at)}: {number(point.good)} / {number(point.bad)}",
    }


def _svg(value: float) -> str:
    """A coordinate: a point in every language."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def round_ceiling(value: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, …"""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= value:
                return digit * power
        power *= 10
