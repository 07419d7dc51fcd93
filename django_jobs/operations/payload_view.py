"""A payload as people may see it."""

from __future__ import annotations

from typing import Any

from django_jobs.conf import get_settings
from django_jobs.redaction import redact, secret_fields
from django_jobs.registry import registry


def shown_payload(type_name: str, payload: Any) -> Any:
    """A copy with the values hidden that ``DJANGO_JOBS["REDACT"]`` or the handler's signature says are secret.

    A type that this build does not know is hidden by names alone. Who may see the rest is the caller's to decide.
    """
    job_type = registry.find(type_name)
    fields = job_type.signature.fields if job_type else ()
    secret = secret_fields((field.name, field.annotation) for field in fields)
    return redact(payload, get_settings().redact, secret)
