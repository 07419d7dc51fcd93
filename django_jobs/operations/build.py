"""What this build can fire, as a fingerprint: two processes with the same one need not watch each other's schedules."""

from __future__ import annotations

from hashlib import sha256

from django_jobs.conf import get_settings
from django_jobs.policy import JobType
from django_jobs.registry import registry


def build_fingerprint() -> str:
    """Of the registered types with their names and fields, and of the declared queues."""
    types = sorted(_words(job_type) for job_type in registry)
    return sha256(repr((types, sorted(get_settings().queues))).encode()).hexdigest()


def _words(job_type: JobType) -> str:
    fields = [(field.name, field.required) for field in job_type.signature.fields]
    return repr((job_type.name, sorted(job_type.aliases), fields))
