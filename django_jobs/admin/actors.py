"""The viewer as the actor of an operation."""

from __future__ import annotations

from django.http import HttpRequest

from django_jobs.operations.audit import Actor


def actor(request: HttpRequest) -> Actor:
    return Actor.of_user(request.user, "admin")
